#include "replay/cuda/ops/elements.cuh"

namespace stet::cuda {
namespace {

struct LoadRow {
  float* out;
  StateRows rows;
  uint32_t width;
  __device__ void operator()(const CudaStep& step, uint32_t row, uint32_t i) const {
    out[size_t{row} * width + i] = rows.row(step.position + row)[i];
  }
};

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_load_row(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  cuda::launch_elements(on, step, op, op.out_width, cuda::LoadRow{op.out, std::get<KeepSpec>(op.spec).rows, op.out_width});
}

}  // namespace stet
