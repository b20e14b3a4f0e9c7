#include "base/fp.h"
#include "replay/cuda/ops/elements.cuh"

namespace stet::cuda {
namespace {

struct MeanStreams {
  const float* in;
  float* out;
  uint32_t streams, width;
  bool rounded;
  __device__ void operator()(const CudaStep&, uint32_t row, uint32_t i) const {
    const float* x = in + size_t{row} * streams * width + i;
    float sum = x[0];
    for (uint32_t j = 1; j < streams; ++j) sum = __fadd_rn(sum, x[size_t{j} * width]);
    const float mean = __fdiv_rn(sum, static_cast<float>(streams));
    out[size_t{row} * width + i] = rounded_if(rounded, mean);
  }
};

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_mean_streams(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  cuda::launch_elements(on, step, op, op.out_width,
                        cuda::MeanStreams{op.in, op.out, op.in_width / op.out_width, op.out_width, op.rounded});
}

}  // namespace stet
