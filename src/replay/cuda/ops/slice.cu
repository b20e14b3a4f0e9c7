#include "replay/cuda/ops/elements.cuh"

namespace stet::cuda {
namespace {

struct Slice {
  const float* in;
  float* out;
  uint32_t first, in_width, width;
  __device__ void operator()(const CudaStep&, uint32_t row, uint32_t i) const {
    out[size_t{row} * width + i] = in[size_t{row} * in_width + first + i];
  }
};

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_slice(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const uint32_t first = std::get<SliceSpec>(op.spec).first;
  cuda::launch_elements(on, step, op, op.out_width, cuda::Slice{op.in, op.out, first, op.in_width, op.out_width});
}

}  // namespace stet
