#include "kernels/matvec/element_sums.cuh"
#include "kernels/matvec/task_kernel.cuh"
#include "replay/cuda/expert_op.h"

namespace stet::cuda {
namespace {

// The slots' results of an output, added in order: add() for each, then store().
class DownSum {
 public:
  __device__ void add(const ExpertProduct& p, uint32_t slot, float product) {
    const float term = rounded_if(p.rounded, product);
    sum_ = slot == 0 ? term : __fadd_rn(sum_, term);
  }
  __device__ void store(const ExpertProduct& p, uint32_t row, uint32_t n) const {
    if (n >= p.n) return;
    const size_t at = size_t{row} * p.n + n;
    p.out[at] = rounded_if(p.rounded, __fadd_rn(sum_, p.shared[at]));
  }

 private:
  float sum_ = 0.0f;
};

// A task is a tile; its parts are the slots.
struct DownTasks {
  const ExpertProduct& p;
  const ChosenExperts& chosen;
  uint32_t row;

  __device__ const uint8_t* tile(uint32_t task, uint32_t slot) const { return chosen.matrix[0][slot] + task * p.tile_bytes; }
  __device__ uint32_t x(uint32_t, uint32_t slot) const { return slot * p.k; }
  __device__ void finish(uint32_t task, const TaskSums& sums) const {
    if (threadIdx.x % kWarp >= kTileRows) return;
    DownSum sum;
    for (uint32_t slot = 0; slot < p.chosen; ++slot) sum.add(p, slot, sums.of(slot, threadIdx.x % kTileRows));
    sum.store(p, row, task * kTileRows + threadIdx.x % kTileRows);
  }
};

template <typename Unit>
__global__ void __launch_bounds__(kRowThreads, 2)
    expert_down_tasks(const CudaStep* step, const __grid_constant__ ExpertProduct p, const __grid_constant__ TaskCut cut) {
  using Reader = TaskReader<Unit, DownTasks>;
  uint8_t* const shared = dynamic_shared();
  __shared__ ChosenExperts chosen;
  release_next();
  const uint32_t row = blockIdx.y;
  if (row >= live_rows(step, p.head)) return wait_for_previous();
  // The routes are there before the wait: expert_gate, which came between, lets nothing begin before they are.
  find_chosen(p, row, chosen);
  const DownTasks tasks = {p, chosen, row};
  const TaskTeam team(cut);
  Reader reader({cut, tasks, team}, run_of_share(cut, team), shared + threadIdx.x / kWarp * Reader::kBytes);
  float* partial = reinterpret_cast<float*>(shared + kTaskWarps * Reader::kBytes);
  wait_for_previous();
  const typename Unit::Input x = TaskInput<Unit>::make(reinterpret_cast<uint8_t*>(partial) + cut.partial_bytes(),
                                                       p.in + size_t{row} * p.in_width, p.k, p.chosen);
  run_tasks<Unit>(cut, tasks, team, reader, x, partial);
}

template <Format kFormat>
__global__ void __launch_bounds__(1024) expert_down_elements(const CudaStep* step, const __grid_constant__ ExpertProduct p) {
  __shared__ float partial[kMaxSegments * kTileRows];
  release_next();
  wait_for_previous();
  const uint32_t row = blockIdx.y;
  if (row >= live_rows(step, p.head)) return;
  DownSum sum;
  for (uint32_t slot = 0; slot < p.chosen; ++slot) {
    const uint32_t expert = expert_index(__ldcg(p.routes + size_t{row} * 2 * p.chosen + slot), p.experts);
    partial[threadIdx.x] = element_sum<kFormat>(p.first[expert] + blockIdx.x * p.tile_bytes, p.k, p.segments,
                                                p.in + size_t{row} * p.in_width + slot * p.k);
    __syncthreads();
    if (threadIdx.x < kTileRows) sum.add(p, slot, element_tree(partial, p.segments));
    __syncthreads();
  }
  if (threadIdx.x < kTileRows) sum.store(p, row, blockIdx.x * kTileRows + threadIdx.x);
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_expert_down(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const PackedMatrix& m = cuda::experts_of(op).down[0];
  const cuda::ExpertProduct p = cuda::expert_product(op, m);
  const bool done = cuda::with_task_unit(m, [&]<typename Unit>() {
    const cuda::TaskCut cut = cuda::cut_tasks(p.k, p.tiles, p.chosen, on.processors);
    cuda::launch_tasks<Unit, cuda::DownTasks>(on, cuda::expert_down_tasks<Unit>, op.rows, p.chosen, step, p, cut);
  });
  if (done) return;
  cuda::with_elements(m.format, [&]<Format kFormat>() {
    cuda::launch(on, cuda::expert_down_elements<kFormat>, dim3(p.tiles, op.rows), p.segments * kTileRows, 0, step, p);
  });
}

}  // namespace stet
