#include "base/fp.h"
#include "kernels/cuda/math.cuh"
#include "replay/cuda/ops/elements.cuh"

namespace stet::cuda {
namespace {

struct SwigluLimit {
  const float *gate, *up;
  float* out;
  uint32_t width;
  float limit;
  bool rounded;
  __device__ void operator()(const CudaStep&, uint32_t row, uint32_t i) const {
    const size_t at = size_t{row} * width + i;
    out[at] = rounded_if(rounded, swiglu_limit(gate[at], up[at], limit));
  }
};

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_swiglu_limit(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const float limit = std::get<LimitSpec>(op.spec).limit;
  cuda::launch_elements(on, step, op, op.in_width,
                        cuda::SwigluLimit{op.in, op.in2, op.out, op.in_width, limit, op.rounded});
}

}  // namespace stet
