#include "base/cuda/device.cuh"
#include "replay/cuda/row_op_cuda.h"

namespace stet::cuda {
namespace {

constexpr uint32_t kKeepThreads = 256;

__global__ void __launch_bounds__(kKeepThreads)
    keep_rows(const CudaStep* step, const __grid_constant__ StateRows rows, const float* in, uint32_t width, bool head, float* out) {
  release_next();
  wait_for_previous();
  const uint32_t row = blockIdx.y, i = blockIdx.x * kKeepThreads + threadIdx.x;
  if (row >= (head ? step->head_rows : step->rows) || i >= width) return;
  const size_t at = size_t{row} * width + i;
  out[at] = rows.row(step->position + row)[i] = in[at];
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_keep_row(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const dim3 grid((op.out_width + cuda::kKeepThreads - 1) / cuda::kKeepThreads, op.rows);
  cuda::launch(on, cuda::keep_rows, grid, cuda::kKeepThreads, 0, step, std::get<KeepSpec>(op.spec).rows, op.in, op.out_width, op.head, op.out);
}

}  // namespace stet
