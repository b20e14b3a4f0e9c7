#include "replay/cuda/ops/elements.cuh"

namespace stet::cuda {
namespace {

struct KeepRow {
  const float* in;
  float* out;
  StateRows rows;
  uint32_t width;
  __device__ void operator()(const CudaStep& step, uint32_t row, uint32_t i) const {
    const size_t at = size_t{row} * width + i;
    out[at] = rows.row(step.position + row)[i] = in[at];
  }
};

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_keep_row(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  cuda::launch_elements(on, step, op, op.out_width, cuda::KeepRow{op.in, op.out, std::get<KeepSpec>(op.spec).rows, op.out_width});
}

}  // namespace stet
