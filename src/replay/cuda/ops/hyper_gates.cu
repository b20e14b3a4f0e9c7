#include "kernels/hyper/hyper_cuda.cuh"
#include "replay/cuda/row_op_cuda.h"

namespace stet::cuda {
namespace {

struct Gates {
  HyperSpec spec;
  const float *streams, *mix;
  float* out;
  uint32_t width;    // of a row of streams
  uint32_t outputs;  // of a row of mix and of out
  bool head;
};

// A row a block.
template <uint32_t kSide>
__global__ void __launch_bounds__(kGateThreads) gates_of_rows(const CudaStep* step, const __grid_constant__ Gates g) {
  __shared__ float lanes[kNormLanes];
  release_next();
  wait_for_previous();
  const size_t row = blockIdx.x;
  if (row >= live_rows(step, g.head)) return;
  hyper_gates_row<kSide>(g.spec, g.streams + row * g.width, g.width, g.mix + row * g.outputs, g.out + row * g.outputs, lanes);
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_hyper_gates(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const cuda::Gates g = {std::get<HyperSpec>(op.spec), op.in, op.in2, op.out, op.in_width, op.out_width, op.head};
  const auto kernel = g.spec.streams <= 4 ? cuda::gates_of_rows<4> : cuda::gates_of_rows<8>;
  cuda::launch(on, kernel, dim3(op.rows), cuda::kGateThreads, 0, step, g);
}

}  // namespace stet
