#include "kernels/matvec/matvec_kinds_cuda.h"
#include "kernels/matvec/matvec_wide_integer.cuh"

namespace stet::cuda {
namespace {

// 128 rows of weights. Which is best where was measured on an H200 (bench/bench_wide_products.cu).
using Wide64 = WideShape<2, 4, 4, 2, 4>;        // 64 rows of x
using Wide128 = WideShape<2, 4, 4, 4, 4>;       // 128
using Wide128Short = WideShape<4, 2, 2, 8, 4>;  // 128; K below 8192, formats of one scale

template <Format kFormat>
void launch_if_wide_integer(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  if constexpr (!kIntegerWeights<kFormat>) {
    fail_cuda_format("integer", static_cast<uint32_t>(kFormat));
  } else if (p.rows <= Wide64::kGroups * kCudaGroup) {
    launch_wide_integer<kFormat, Wide64>(on, step, p);
  } else {
    if constexpr (!CudaWeights<kFormat>::kMinimum && !CudaWeights<kFormat>::kHalves)
      if (p.k < 8192) return launch_wide_integer<kFormat, Wide128Short>(on, step, p);
    launch_wide_integer<kFormat, Wide128>(on, step, p);
  }
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_wide_integer_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  switch (p.format) {
#define FORMAT(id, name, ggml) \
  case Format::id:             \
    return cuda::launch_if_wide_integer<Format::id>(on, step, p);
#include "formats/formats.def"
#undef FORMAT
  }
}

}  // namespace stet
