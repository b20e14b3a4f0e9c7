#include "kernels/matvec/element_sums.cuh"
#include "kernels/matvec/task_kernel.cuh"
#include "replay/cuda/expert_op.h"

namespace stet::cuda {
namespace {

// swiglu_limit of two sums, weighted: element n of a slot.
__device__ __forceinline__ void store_gated(const ExpertProduct& p, uint32_t row, uint32_t slot, uint32_t n, float gate, float up) {
  if (n >= p.n) return;
  const float inner = swiglu_limit(rounded_if(p.rounded, gate), rounded_if(p.rounded, up), p.limit);
  const float weight = __ldcg(p.routes + size_t{row} * 2 * p.chosen + p.chosen + slot);
  p.out[size_t{row} * p.out_width + slot * p.n + n] = rounded_if(p.rounded, __fmul_rn(inner, weight));
}

// A task is a tile of a slot; its parts are gate and up.
struct GateTasks {
  const ExpertProduct& p;
  const ChosenExperts& chosen;
  uint32_t row;

  struct Place {
    uint32_t slot, tile;
  };
  __device__ Place place(uint32_t task) const { return {task / p.tiles, task % p.tiles}; }
  __device__ const uint8_t* tile(uint32_t task, uint32_t part) const {
    const Place at = place(task);
    return chosen.matrix[part][at.slot] + at.tile * p.tile_bytes;
  }
  __device__ uint32_t x(uint32_t, uint32_t) const { return 0; }
  __device__ void finish(uint32_t task, const TaskSums& sums) const {
    const uint32_t r = threadIdx.x % kTileRows;
    const float own = sums.of(threadIdx.x % kWarp / kTileRows, r), up = __shfl_xor_sync(kAll, own, kTileRows);
    const Place at = place(task);
    if (threadIdx.x % kWarp < kTileRows) store_gated(p, row, at.slot, at.tile * kTileRows + r, own, up);
  }
};

template <typename Unit>
__global__ void __launch_bounds__(kRowThreads, 2)
    expert_gate_tasks(const CudaStep* step, const __grid_constant__ ExpertProduct p, const __grid_constant__ TaskCut cut) {
  using Reader = TaskReader<Unit, GateTasks>;
  uint8_t* const shared = dynamic_shared();
  __shared__ ChosenExperts chosen;
  const uint32_t row = blockIdx.y, rows = live_rows(step, p.head);
  wait_for_previous();
  // Not earlier: what follows may rely on the routes being there when it begins (expert_down).
  release_next();
  if (row >= rows) return;
  find_chosen(p, row, chosen);
  const GateTasks tasks = {p, chosen, row};
  const TaskTeam team(cut);
  Reader reader({cut, tasks, team}, run_of_share(cut, team), shared + threadIdx.x / kWarp * Reader::kBytes);
  float* partial = reinterpret_cast<float*>(shared + kTaskWarps * Reader::kBytes);
  const typename Unit::Input x = TaskInput<Unit>::make(reinterpret_cast<uint8_t*>(partial) + cut.partial_bytes(),
                                                       p.in + size_t{row} * p.in_width, p.k, 1);
  run_tasks<Unit>(cut, tasks, team, reader, x, partial);
}

template <Format kFormat>
__global__ void __launch_bounds__(1024) expert_gate_elements(const CudaStep* step, const __grid_constant__ ExpertProduct p) {
  __shared__ float partial[2][kMaxSegments * kTileRows];
  const uint32_t row = blockIdx.z, slot = blockIdx.y, rows = live_rows(step, p.head);
  wait_for_previous();
  release_next();
  if (row >= rows) return;
  const uint32_t expert = expert_index(__ldcg(p.routes + size_t{row} * 2 * p.chosen + slot), p.experts);
  const float* x = p.in + size_t{row} * p.in_width;
  for (uint32_t i = 0; i < 2; ++i)
    partial[i][threadIdx.x] = element_sum<kFormat>((i == 0 ? p.first : p.second)[expert] + blockIdx.x * p.tile_bytes, p.k, p.segments, x);
  __syncthreads();
  if (threadIdx.x >= kTileRows) return;
  store_gated(p, row, slot, blockIdx.x * kTileRows + threadIdx.x, element_tree(partial[0], p.segments), element_tree(partial[1], p.segments));
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_expert_gate(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const PackedMatrix& m = cuda::experts_of(op).gate[0];
  const cuda::ExpertProduct p = cuda::expert_product(op, m);
  const bool done = cuda::with_task_unit(m, [&]<typename Unit>() {
    const cuda::TaskCut cut = cuda::cut_tasks(p.k, p.chosen * p.tiles, 2, on.processors);
    cuda::launch_tasks<Unit, cuda::GateTasks>(on, cuda::expert_gate_tasks<Unit>, op.rows, 1, step, p, cut);
  });
  if (done) return;
  cuda::with_elements(m.format, [&]<Format kFormat>() {
    cuda::launch(on, cuda::expert_gate_elements<kFormat>, dim3(p.tiles, p.chosen, op.rows), p.segments * kTileRows, 0, step, p);
  });
}

}  // namespace stet
