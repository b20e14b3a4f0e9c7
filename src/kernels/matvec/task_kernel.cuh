// Products of integer weights with activations in shared memory, cut in tasks that teams of warps take: a task is what needs the sums of
// `parts` tiles, each shared by some warps, which join their segments themselves. An Op says what the tasks are:
//
//   tile(task, part)     the tile of weights
//   x(task, part)        where column 0 of it lies in the input
//   finish(task, sums)   the outputs, by one warp; sums: TaskSums
#pragma once

#include "kernels/matvec/chunk_reader.cuh"
#include "kernels/matvec/task_input.cuh"

namespace stet::cuda {

constexpr uint32_t kTaskWarps = kRowThreads / kWarp;

struct TaskCut {
  uint32_t blocks, segments, chunks;  // of K
  uint32_t tasks, parts;
  uint32_t shares, per_share;         // warps of a part; segments of one
  uint32_t team;                      // warps of a task
  __host__ __device__ uint32_t sums() const { return parts * shares * kTileRows; }
  // Of a block of threads: two tasks a team.
  __host__ __device__ size_t partial_bytes() const { return size_t{kTaskWarps / team} * 2 * sums() * sizeof(float); }
};

// The warps of a team, and which tasks are theirs.
struct TaskTeam {
  uint32_t of_block, warp, index, teams;
  // Few tasks go to many processors.
  __device__ explicit TaskTeam(const TaskCut& cut)
      : of_block(threadIdx.x / kWarp / cut.team),
        warp(threadIdx.x / kWarp % cut.team),
        index(of_block * gridDim.x + blockIdx.x),
        teams(kTaskWarps / cut.team * gridDim.x) {}
  __device__ uint32_t share(const TaskCut& cut) const { return warp % cut.shares; }
  __device__ uint32_t first_part(const TaskCut& cut) const { return warp / cut.shares; }
  __device__ static uint32_t parts_at_once(const TaskCut& cut) { return cut.team / cut.shares; }
};

// The segments that a warp of a team sums.
__device__ __forceinline__ SegmentRun run_of_share(const TaskCut& cut, const TaskTeam& team) {
  return {team.share(cut) * cut.per_share, cut.per_share, cut.segments, cut.chunks, cut.blocks};
}

// The tiles that a warp has a share of: parts of one task after the other.
template <typename Op>
class TaskTiles {
 public:
  __device__ TaskTiles(const TaskCut& cut, const Op& op, const TaskTeam& team)
      : cut_(cut), op_(op), teams_(team.teams), first_part_(team.first_part(cut)), task_(team.index), part_(first_part_) {}
  __device__ const uint8_t* next() {
    if (first_part_ >= cut_.parts || task_ >= cut_.tasks) return nullptr;
    const uint8_t* tile = op_.tile(task_, part_);
    part_ += TaskTeam::parts_at_once(cut_);
    if (part_ >= cut_.parts) part_ = first_part_, task_ += teams_;
    return tile;
  }

 private:
  const TaskCut& cut_;
  const Op& op_;
  const uint32_t teams_, first_part_;
  uint32_t task_, part_;
};

template <typename Unit, typename Op>
using TaskReader = ChunkReader<Unit, TaskTiles<Op>>;

// What the warps of a team have left: [part][share][row of the tile].
struct TaskSums {
  const float* partial;
  uint32_t shares;
  __device__ float of(uint32_t part, uint32_t row) const {
    return tree_sum(partial + part * shares * kTileRows + row, shares, kTileRows);
  }
};

// All tasks of a block. partial: cut.partial_bytes().
template <typename Unit, typename Op>
__device__ __forceinline__ void run_tasks(const TaskCut& cut, const Op& op, const TaskTeam& team, TaskReader<Unit, Op>& reader,
                                          const typename Unit::Input& x, float* partial) {
  const uint32_t share = team.share(cut), first_part = team.first_part(cut);
  const SegmentRun run = run_of_share(cut, team);
  float* of_team = partial + team.of_block * 2 * cut.sums();
#pragma unroll 1
  for (uint32_t task = team.index, turn = 0; task < cut.tasks; task += team.teams, ++turn) {
    float* left = of_team + turn % 2 * cut.sums();  // what the task before left may still be read
#pragma unroll 1
    for (uint32_t part = first_part; part < cut.parts; part += TaskTeam::parts_at_once(cut))
      Unit::leave(sum_of_segments<Unit>(reader, run, x, op.x(task, part) / kBlock), left + (part * cut.shares + share) * kTileRows);
    barrier(1 + team.of_block, cut.team * kWarp);
    if (team.warp == turn % cut.team) op.finish(task, TaskSums{left, cut.shares});
  }
}

// ---- on the host

constexpr size_t kTaskShared = 220 * 1024;

// Which teams leave the last of the processors done soonest. What a run costs beside its chunks is a part of a chunk, a task a chunk.
inline TaskCut cut_tasks(uint32_t k, uint32_t tasks, uint32_t parts, uint32_t processors) {
  constexpr double kOfRun = 0.3, kOfTask = 1.0;
  constexpr size_t kMostPartial = 16 * 1024;
  TaskCut best = {};
  double best_cost = 1e30;
  for (uint32_t team = 2; team <= kTaskWarps; team *= 2)  // a block has fifteen barriers beside its own
    for (uint32_t shares = 1; shares <= team; shares *= 2) {
      TaskCut cut = {k / kBlock, segment_count(k, true), chunk_count(k), tasks, parts, shares, 0, team};
      if (shares > cut.segments) continue;
      cut.per_share = cut.segments / shares;
      const uint32_t teams = processors * (kTaskWarps / team), rounds = (tasks + teams - 1) / teams, runs = (parts * shares + team - 1) / team;
      const double cost = rounds * (runs * ((cut.chunks + shares - 1) / shares + kOfRun) + kOfTask);
      if (cost < best_cost && cut.partial_bytes() <= kMostPartial) best_cost = cost, best = cut;
    }
  return best;
}

// One block of threads a processor and row of x; two kernels fit on a processor (kPairShared). runs: of K, that the input has.
template <typename Unit, typename Op, typename Kernel, typename Product>
void launch_tasks(const CudaLaunch& on, Kernel kernel, uint32_t rows, uint32_t runs, const CudaStep* step, const Product& p,
                  const TaskCut& cut) {
  const size_t shared = kTaskWarps * TaskReader<Unit, Op>::kBytes + cut.partial_bytes() + TaskInput<Unit>::bytes(p.k, runs);
  if (shared > kTaskShared) fail_cuda_shape("columns of a product in one block of threads", p.k * runs, "use --device cpu");
  allow_shared(kernel, kTaskShared);
  launch(on, kernel, dim3(on.processors, rows), kRowThreads, std::max(shared, kPairShared), step, p, cut);
}

// Calls launch<Unit>() with what multiplies such integer weights and activations; false: they are floats.
template <typename Launch>
bool with_task_unit(const PackedMatrix& m, const Launch& launch) {
  const auto of_format = [&]<Format kFormat>() {
    if constexpr (kPlaneWeights<kFormat>) {
      if (m.input == ActKind::e4m3) return launch.template operator()<PlaneUnit<kFormat, ActKind::e4m3, 1>>(), true;
      if (m.input == ActKind::i8) return launch.template operator()<PlaneUnit<kFormat, ActKind::i8, 1>>(), true;
    } else if constexpr (kIntegerWeights<kFormat>) {
      return launch.template operator()<RowUnit<kFormat>>(), true;
    }
    return false;
  };
  switch (m.format) {
#define FORMAT(id, name, ggml) \
  case Format::id:             \
    return of_format.template operator()<Format::id>();
#include "formats/formats.def"
#undef FORMAT
  }
  return false;
}

}  // namespace stet::cuda
