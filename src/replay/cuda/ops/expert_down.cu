#include "kernels/experts/expert_product.cuh"
#include "replay/cuda/expert_op.h"

namespace stet::cuda {
namespace {

constexpr uint32_t kSlotsAtOnce = 8;  // whose sums are there at the same time

// The runs of a warp. A task is a tile of all slots: slot by slot, `shares` runs each.
template <typename Unit>
struct DownRuns {
  const ExpertProduct& p;
  const ChosenExperts& chosen;
  uint32_t shares, tasks, per_task;  // per_task: runs of the warp

  __device__ DownRuns(const ExpertProduct& product, const ChosenExperts& of_row)
      : p(product), chosen(of_row), shares(p.segments / Unit::kSegments), tasks(0), per_task(runs_of(p.chosen * shares)) {
    if (blockIdx.x < p.tiles) tasks = (p.tiles - blockIdx.x + gridDim.x - 1) / gridDim.x;
  }
  // Of `all` runs, those of the warp.
  __device__ static uint32_t runs_of(uint32_t all) {
    const uint32_t warp = threadIdx.x / kWarp;
    return all > warp ? (all - warp + kExpertWarps - 1) / kExpertWarps : 0;
  }
  __device__ uint32_t tile(uint32_t task) const { return blockIdx.x + task * gridDim.x; }
  __device__ bool find(uint32_t i, ExpertRun& run) const {
    if (i >= tasks * per_task) return false;
    const uint32_t task = i / per_task, place = i % per_task * kExpertWarps + threadIdx.x / kWarp, slot = place / shares;
    run = expert_run<Unit>(p, chosen.matrix[0][slot], tile(task), place % shares, slot * p.k);
    return true;
  }
};

template <typename Unit>
__global__ void __launch_bounds__(kRowThreads, 2) expert_down_rows(const CudaStep* step, const __grid_constant__ ExpertProduct p) {
  using Reader = ExpertReader<Unit, DownRuns<Unit>>;
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ ChosenExperts chosen;
  __shared__ float terms[kSlotsAtOnce][kTileRows];
  release_next();
  const uint32_t row = blockIdx.y, warp = threadIdx.x / kWarp, r = threadIdx.x % kTileRows;
  if (row >= (p.head ? step->head_rows : step->rows)) return wait_for_previous();
  // The routes are there before the wait: expert_gate, which came between, lets nothing begin before they are.
  find_chosen(p, row, chosen);
  const DownRuns<Unit> runs(p, chosen);
  Reader reader(runs, shared);
  float* partial = reinterpret_cast<float*>(shared + Reader::kBytes);  // [slot][run][row of the tile]
  wait_for_previous();
  const typename Unit::Input x = ExpertInput<Unit>::make(reinterpret_cast<uint8_t*>(partial + kSlotsAtOnce * runs.shares * kTileRows),
                                                         p.in + size_t{row} * p.in_width, p.k, p.chosen);
#pragma unroll 1
  for (uint32_t task = 0; task < runs.tasks; ++task) {
    float sum = 0.0f;
    uint32_t next = task * runs.per_task;
#pragma unroll 1
    for (uint32_t first = 0; first < p.chosen; first += kSlotsAtOnce) {
      const uint32_t slots = min(kSlotsAtOnce, p.chosen - first), mine = DownRuns<Unit>::runs_of(slots * runs.shares);
#pragma unroll 1
      for (uint32_t i = 0; i < mine; ++i, ++next) {
        ExpertRun run;
        runs.find(next, run);
        Unit::leave(reader.sum(run, x), partial + (i * kExpertWarps + warp) * kTileRows);
      }
      __syncthreads();
      const uint32_t slot = threadIdx.x / kTileRows;
      if (slot < slots) terms[slot][r] = rounded_if(p.rounded, tree_of_runs(partial + slot * runs.shares * kTileRows + r, runs.shares));
      __syncthreads();
      if (threadIdx.x < kTileRows)
        for (uint32_t s = 0; s < slots; ++s) sum = first + s == 0 ? terms[s][r] : __fadd_rn(sum, terms[s][r]);
    }
    const uint32_t n = runs.tile(task) * kTileRows + r;
    if (threadIdx.x >= kTileRows || n >= p.n) continue;
    const size_t at = size_t{row} * p.n + n;
    p.out[at] = rounded_if(p.rounded, __fadd_rn(sum, p.shared[at]));
  }
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_expert_down(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const ExpertsSpec& spec = *std::get<std::shared_ptr<const ExpertsSpec>>(op.spec);
  const PackedMatrix& m = spec.down[0];
  const cuda::ExpertProduct p = cuda::expert_product(op, spec, m);
  cuda::with_expert_unit(m, [&]<typename Unit>() {
    const size_t partial = cuda::kSlotsAtOnce * p.segments / Unit::kSegments * kTileRows * sizeof(float);
    cuda::launch_expert(on, cuda::expert_down_rows<Unit>, p.tiles, op.rows,
                        cuda::ExpertReader<Unit, cuda::DownRuns<Unit>>::kBytes + partial + cuda::ExpertInput<Unit>::bytes(p.k, p.chosen),
                        step, p);
  });
}

}  // namespace stet
