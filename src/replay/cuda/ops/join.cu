#include "replay/cuda/ops/elements.cuh"

namespace stet::cuda {
namespace {

struct Join {
  const float *left, *right;
  float* out;
  uint32_t left_width, right_width;
  bool from_head;  // of the left one
  __device__ void operator()(const CudaStep& step, uint32_t row, uint32_t i) const {
    const float* l = left + size_t{row + (from_head ? step.head_first : 0)} * left_width;
    const float* r = right + size_t{row} * right_width;
    out[size_t{row} * (left_width + right_width) + i] = i < left_width ? l[i] : r[i - left_width];
  }
};

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_join(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  cuda::launch_elements(on, step, op, op.in_width + op.in2_width,
                        cuda::Join{op.in, op.in2, op.out, op.in_width, op.in2_width, op.from_head});
}

}  // namespace stet
