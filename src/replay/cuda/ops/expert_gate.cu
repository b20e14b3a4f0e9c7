#include "kernels/experts/expert_product.cuh"
#include "replay/cuda/expert_op.h"

namespace stet::cuda {
namespace {

// The runs of a warp. A task is a tile of a slot: gate, then up, `shares` runs each. A round is one task, or two where one would leave
// half the warps without a run.
template <typename Unit>
struct GateRuns {
  const ExpertProduct& p;
  const ChosenExperts& chosen;
  uint32_t shares, tasks, at_once, rounds, per_round;  // per_round: runs of a warp

  __device__ GateRuns(const ExpertProduct& product, const ChosenExperts& of_row)
      : p(product), chosen(of_row), shares(p.segments / Unit::kSegments), tasks(0), at_once(2 * shares < kExpertWarps ? 2 : 1) {
    const uint32_t all = p.chosen * p.tiles;
    if (blockIdx.x < all) tasks = (all - blockIdx.x + gridDim.x - 1) / gridDim.x;
    rounds = (tasks + at_once - 1) / at_once;
    per_round = max(1u, 2 * shares / kExpertWarps);
  }
  // Task i of the block: slot and tile.
  __device__ uint2 task(uint32_t i) const {
    const uint32_t of_all = blockIdx.x + i * gridDim.x, slot = of_all / p.tiles;
    return {slot, of_all - slot * p.tiles};
  }
  __device__ bool find(uint32_t i, ExpertRun& run) const {
    const uint32_t round = i / per_round, warp = threadIdx.x / kWarp, place = i % per_round * kExpertWarps + warp;
    const uint32_t of_block = round * at_once + place / (2 * shares), of_task = place % (2 * shares);
    if (of_block >= tasks) return false;
    const uint2 at = task(of_block);
    run = expert_run<Unit>(p, chosen.matrix[of_task / shares][at.x], at.y, of_task % shares, 0);
    return true;
  }
};

// The outputs of a task, by one warp: its halves have gate and up.
template <typename Unit>
__device__ void finish_gate(const ExpertProduct& p, const GateRuns<Unit>& runs, uint32_t task, uint32_t row, const float* partial) {
  const uint32_t r = threadIdx.x % kTileRows, half = threadIdx.x % kWarp / kTileRows;
  const float sum = rounded_if(p.rounded, tree_of_runs(partial + half * runs.shares * kTileRows + r, runs.shares));
  const float other = __shfl_xor_sync(kAll, sum, kTileRows);
  const uint2 at = runs.task(task);
  const uint32_t n = at.y * kTileRows + r;
  if (half != 0 || n >= p.n) return;
  const float weight = __ldcg(p.routes + size_t{row} * 2 * p.chosen + p.chosen + at.x);
  const float gate = sum > p.limit ? p.limit : sum, up = other > p.limit ? p.limit : other < -p.limit ? -p.limit : other;
  p.out[size_t{row} * p.out_width + at.x * p.n + n] = rounded_if(p.rounded, __fmul_rn(__fmul_rn(silu(gate), up), weight));
}

template <typename Unit>
__global__ void __launch_bounds__(kRowThreads, 2) expert_gate_rows(const CudaStep* step, const __grid_constant__ ExpertProduct p) {
  using Reader = ExpertReader<Unit, GateRuns<Unit>>;
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ ChosenExperts chosen;
  wait_for_previous();
  // Not earlier: what follows may rely on the routes being there when it begins (expert_down).
  release_next();
  const uint32_t row = blockIdx.y, warp = threadIdx.x / kWarp;
  if (row >= (p.head ? step->head_rows : step->rows)) return;
  find_chosen(p, row, chosen);
  const GateRuns<Unit> runs(p, chosen);
  Reader reader(runs, shared);
  float* partial = reinterpret_cast<float*>(shared + Reader::kBytes);  // [two rounds][run][row of the tile]
  const uint32_t of_round = max(kExpertWarps, 2 * runs.shares) * kTileRows;
  const typename Unit::Input x =
      ExpertInput<Unit>::make(reinterpret_cast<uint8_t*>(partial + 2 * of_round), p.in + size_t{row} * p.in_width, p.k, 1);
#pragma unroll 1
  for (uint32_t round = 0; round < runs.rounds; ++round) {
    float* left = partial + round % 2 * of_round;  // what the round before left may still be read
#pragma unroll 1
    for (uint32_t i = 0; i < runs.per_round; ++i) {
      ExpertRun run;
      if (!runs.find(round * runs.per_round + i, run)) continue;
      Unit::leave(reader.sum(run, x), left + (i * kExpertWarps + warp) * kTileRows);
    }
    __syncthreads();
    if (warp != round % kExpertWarps) continue;
    for (uint32_t i = 0; i < runs.at_once && round * runs.at_once + i < runs.tasks; ++i)
      finish_gate(p, runs, round * runs.at_once + i, row, left + i * 2 * runs.shares * kTileRows);
  }
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_expert_gate(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const ExpertsSpec& spec = *std::get<std::shared_ptr<const ExpertsSpec>>(op.spec);
  const PackedMatrix& m = spec.gate[0];
  const cuda::ExpertProduct p = cuda::expert_product(op, spec, m);
  cuda::with_expert_unit(m, [&]<typename Unit>() {
    constexpr uint32_t kSegments = Unit::kSegments;
    const size_t partial = 2 * std::max(cuda::kExpertWarps, 2 * p.segments / kSegments) * kTileRows * sizeof(float);
    cuda::launch_expert(on, cuda::expert_gate_rows<Unit>, p.chosen * p.tiles, op.rows,
                        cuda::ExpertReader<Unit, cuda::GateRuns<Unit>>::kBytes + partial + cuda::ExpertInput<Unit>::bytes(p.k, 1), step, p);
  });
}

}  // namespace stet
