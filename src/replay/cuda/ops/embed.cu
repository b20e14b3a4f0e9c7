#include "formats/element_cuda.cuh"
#include "replay/cuda/ops/elements.cuh"

namespace stet::cuda {
namespace {

template <Format kFormat>
struct Embed {
  const uint8_t* table;
  uint64_t tile_bytes;
  float* out;
  uint32_t width;
  __device__ void operator()(const CudaStep& step, uint32_t row, uint32_t i) const {
    const uint32_t token = static_cast<uint32_t>(step.tokens[row]);
    out[size_t{row} * width + i] = element<kFormat>(table + token / kTileRows * tile_bytes, width, token % kTileRows, i);
  }
};

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_embed(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  cuda::with_elements(op.matrix.format, [&]<Format kFormat>() {
    const cuda::Embed<kFormat> embed = {op.matrix.data, op.matrix.tile_bytes(), op.out, op.out_width};
    cuda::launch_elements(on, step, op, op.out_width, embed);
  });
}

}  // namespace stet
