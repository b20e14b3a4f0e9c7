#include "base/cuda/device.cuh"
#include "replay/cuda/row_op_cuda.h"

namespace stet::cuda {
namespace {

constexpr uint32_t kLoadThreads = 256;

__global__ void __launch_bounds__(kLoadThreads)
    load_rows(const CudaStep* step, const __grid_constant__ StateRows rows, uint32_t width, bool head, float* out) {
  release_next();
  wait_for_previous();
  const uint32_t row = blockIdx.y, i = blockIdx.x * kLoadThreads + threadIdx.x;
  if (row >= (head ? step->head_rows : step->rows) || i >= width) return;
  out[size_t{row} * width + i] = rows.row(step->position + row)[i];
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_load_row(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const dim3 grid((op.out_width + cuda::kLoadThreads - 1) / cuda::kLoadThreads, op.rows);
  cuda::launch(on, cuda::load_rows, grid, cuda::kLoadThreads, 0, step, std::get<KeepSpec>(op.spec).rows, op.out_width, op.head, op.out);
}

}  // namespace stet
