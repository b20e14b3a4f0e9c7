#include "replay/cuda/ops/elements.cuh"

namespace stet::cuda {
namespace {

struct Repeat {
  const float* in;
  float* out;
  uint32_t in_width, out_width;
  bool from_head;
  __device__ void operator()(const CudaStep& step, uint32_t row, uint32_t i) const {
    const size_t from = size_t{row + (from_head ? step.head_first : 0)} * in_width;
    out[size_t{row} * out_width + i] = in[from + i % in_width];
  }
};

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_repeat(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  cuda::launch_elements(on, step, op, op.out_width,
                        cuda::Repeat{op.in, op.out, op.in_width, op.out_width, op.from_head});
}

}  // namespace stet
