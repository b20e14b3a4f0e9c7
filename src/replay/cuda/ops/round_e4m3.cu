#include "kernels/rounding/rounding_cuda.cuh"
#include "replay/cuda/row_op_cuda.h"

namespace stet::cuda {
namespace {

struct RoundRuns {
  const float* in;  // [row][runs][run]
  float* out;       // likewise
  uint32_t run, runs;
  bool head;
};

constexpr uint32_t kRoundWarps = 4;  // of a block of threads: a group each

__global__ void __launch_bounds__(kRoundWarps * kWarp) round_runs(const CudaStep* step, const __grid_constant__ RoundRuns p) {
  release_next();
  wait_for_previous();
  const uint32_t groups = (p.run + kPlaneGroup - 1) / kPlaneGroup, i = blockIdx.x * kRoundWarps + threadIdx.x / kWarp;
  if (blockIdx.y >= live_rows(step, p.head) || i >= groups * p.runs) return;
  const uint32_t first = i % groups * kPlaneGroup;
  const size_t at = (size_t{blockIdx.y} * p.runs + i / groups) * p.run + first;
  WarpRow<kPlaneGroup / kWarp> x;
  x.load(p.in + at, min(kPlaneGroup, p.run - first));
  round_e4m3<kPlaneGroup>(x, x.n);
  x.store(p.out + at);
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_round_e4m3(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const uint32_t run = std::get<RoundSpec>(op.spec).run, groups = (run + kPlaneGroup - 1) / kPlaneGroup * op.parts;
  const dim3 grid((groups + cuda::kRoundWarps - 1) / cuda::kRoundWarps, op.rows);
  const cuda::RoundRuns p = {op.in, op.out, run, op.parts, op.head};
  cuda::launch(on, cuda::round_runs, grid, cuda::kRoundWarps * cuda::kWarp, 0, step, p);
}

}  // namespace stet
