#include "kernels/heads/heads_cuda.cuh"
#include "kernels/rounding/rounding_cuda.cuh"
#include "replay/cuda/row_op_cuda.h"

namespace stet::cuda {
namespace {

struct TurnHeads {
  const float* in;  // [row][heads][head_dim]
  float* out;       // likewise
  HeadsSpec spec;
  uint32_t heads;
  bool head;
};

constexpr uint32_t kTurnWarps = 4;  // of a block of threads: a head each

template <uint32_t kRegs>
__global__ void __launch_bounds__(kTurnWarps * kWarp) turn_heads(const CudaStep* step, const __grid_constant__ TurnHeads p) {
  release_next();
  wait_for_previous();
  const HeadsSpec& spec = p.spec;
  const uint32_t head = blockIdx.x * kTurnWarps + threadIdx.x / kWarp, row = blockIdx.y;
  if (row >= live_rows(step, p.head) || head >= p.heads) return;
  const size_t at = (size_t{row} * p.heads + head) * spec.head_dim;
  WarpRow<kRegs> x;
  x.load(p.in + at, spec.head_dim);
  if (spec.unit && spec.rounded) unit_head_bf16(x, spec.eps);
  if (spec.unit && !spec.rounded) unit_head(x, spec.eps);
  rotate_tail(x, spec.rope.at(step->position + row), spec.rope.dim, false);
  if (spec.rounded && spec.indexed) round_indexed(x);
  if (spec.rounded && !spec.indexed) round_bf16(x);
  x.store(p.out + at);
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_turn_heads(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const cuda::TurnHeads p = {op.in, op.out, std::get<HeadsSpec>(op.spec), op.parts, op.head};
  cuda::check_rotation(p.spec.head_dim, p.spec.rope.dim);
  if (p.spec.rounded && p.spec.indexed) cuda::check_indexed_width(p.spec.head_dim);
  cuda::with_warp_row(p.spec.head_dim, [&]<uint32_t kRegs>() {
    const dim3 grid((p.heads + cuda::kTurnWarps - 1) / cuda::kTurnWarps, op.rows);
    cuda::launch(on, cuda::turn_heads<kRegs>, grid, cuda::kTurnWarps * cuda::kWarp, 0, step, p);
  });
}

}  // namespace stet
