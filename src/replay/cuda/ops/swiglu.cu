#include "kernels/cuda/math.cuh"
#include "replay/cuda/ops/elements.cuh"

namespace stet::cuda {
namespace {

struct Swiglu {
  const float *gate, *up;
  float* out;
  uint32_t width;
  __device__ void operator()(const CudaStep&, uint32_t row, uint32_t i) const {
    const size_t at = size_t{row} * width + i;
    out[at] = __fmul_rn(silu(gate[at]), up[at]);
  }
};

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_swiglu(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  cuda::launch_elements(on, step, op, op.in_width, cuda::Swiglu{op.in, op.in2, op.out, op.in_width});
}

}  // namespace stet
