// Row ops whose output elements each depend on few elements of their row: a thread an element.
#pragma once

#include "base/cuda/device.cuh"
#include "replay/cuda/row_op_cuda.h"

namespace stet::cuda {

constexpr uint32_t kElementThreads = 256;

// f(row, i) for the elements 0 .. width - 1 of every row of the step. Of a head list `row` counts the rows whose logits are wanted.
template <typename F>
__global__ void __launch_bounds__(kElementThreads)
    each_element(const CudaStep* step, uint32_t width, bool head, const __grid_constant__ F f) {
  release_next();
  wait_for_previous();
  const uint32_t row = blockIdx.y, i = blockIdx.x * kElementThreads + threadIdx.x;
  if (row < live_rows(step, head) && i < width) f(*step, row, i);
}

template <typename F>
void launch_elements(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op, uint32_t width, const F& f) {
  const dim3 grid((width + kElementThreads - 1) / kElementThreads, op.rows);
  launch(on, each_element<F>, grid, kElementThreads, 0, step, width, op.head, f);
}

}  // namespace stet::cuda
