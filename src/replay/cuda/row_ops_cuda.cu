#include "replay/cuda/row_ops_cuda.h"

#include "formats/element_cuda.cuh"
#include "kernels/cuda/math.cuh"

namespace stet::cuda {
namespace {

constexpr uint32_t kThreads = 256;

template <Format kFormat>
__global__ void __launch_bounds__(kThreads) embed_rows(const CudaStep* step, const __grid_constant__ CudaEmbed e) {
  release_next();
  wait_for_previous();
  if (blockIdx.y >= step->rows) return;
  const uint32_t token = static_cast<uint32_t>(step->tokens[blockIdx.y]), i = blockIdx.x * kThreads + threadIdx.x;
  if (i < e.k) e.out[size_t{blockIdx.y} * e.k + i] = packed_element<kFormat>(e.table + token / kTileRows * e.tile_bytes, e.k, token % kTileRows, i);
}

__global__ void __launch_bounds__(kThreads)
    swiglu_rows(const CudaStep* step, const float* gate, const float* up, uint32_t width, float* out) {
  release_next();
  wait_for_previous();
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (blockIdx.y >= step->rows || i >= width) return;
  const size_t at = size_t{blockIdx.y} * width + i;
  out[at] = __fmul_rn(silu(gate[at]), up[at]);
}

dim3 grid(uint32_t width, uint32_t rows) { return dim3((width + kThreads - 1) / kThreads, rows); }

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_embed(const CudaLaunch& on, const CudaStep* step, const CudaEmbed& e) {
  const auto launch = [&]<Format kFormat>() {
    if constexpr (!cuda::kHasElements<kFormat>) {
      fail_cuda_format("CUDA", static_cast<uint32_t>(kFormat));
    } else {
      cuda::launch(on, cuda::embed_rows<kFormat>, cuda::grid(e.k, e.rows), cuda::kThreads, 0, step, e);
    }
  };
  switch (e.format) {
#define FORMAT(id, name, ggml) \
  case Format::id:             \
    return launch.template operator()<Format::id>();
#include "formats/formats.def"
#undef FORMAT
  }
}

void launch_swiglu(const CudaLaunch& on, const CudaStep* step, const float* gate, const float* up, uint32_t width, uint32_t rows, float* out) {
  cuda::launch(on, cuda::swiglu_rows, cuda::grid(width, rows), cuda::kThreads, 0, step, gate, up, width, out);
}

}  // namespace stet
