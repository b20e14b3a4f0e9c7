// A matrix whose rows lie in groups, each of which is multiplied with its own run of the input.
#include "kernels/matvec/decoded_e4m3.cuh"
#include "kernels/matvec/element_sums.cuh"
#include "kernels/matvec/task_kernel.cuh"
#include "kernels/rounding/round_value.h"
#include "replay/cuda/row_op_cuda.h"

namespace stet::cuda {
namespace {

// Of how many groups a tile has rows, at most.
__host__ __device__ constexpr uint32_t groups_of_tile(uint32_t group_rows) {
  return group_rows % kTileRows == 0 ? 1 : (kTileRows - 2) / group_rows + 2;
}

struct Grouped {
  const float* in;  // [row][in_width]
  float* out;       // [row][out_width]
  const uint8_t* tiles;
  uint64_t tile_bytes;
  uint32_t in_width, out_width, k, rows, group_rows, segments, chunks;
  bool head, rounded;
};

__device__ __forceinline__ void store(const Grouped& p, uint32_t row, uint32_t n, float sum) {
  if (n < p.rows) p.out[size_t{row} * p.out_width + n] = rounded_if(p.rounded, sum);
}

// ---- weights that are read as floats, groups of any size

template <Format kFormat>
__global__ void __launch_bounds__(1024) grouped_elements(const CudaStep* step, const __grid_constant__ Grouped p) {
  __shared__ float partial[kMaxSegments * kTileRows];
  release_next();
  wait_for_previous();
  const uint32_t row = blockIdx.y, n = blockIdx.x * kTileRows + threadIdx.x % kTileRows;
  if (row >= live_rows(step, p.head)) return;
  const float* x = p.in + size_t{row} * p.in_width + size_t{min(n, p.rows - 1) / p.group_rows} * p.k;
  partial[threadIdx.x] = element_sum<kFormat>(p.tiles + blockIdx.x * p.tile_bytes, p.k, p.segments, x);
  __syncthreads();
  if (threadIdx.x < kTileRows) store(p, row, n, element_tree(partial, p.segments));
}

// ---- integer products, groups of any size

// A task is a tile and one of the groups that it has rows of.
struct GroupTasks {
  const Grouped& p;
  uint32_t row, of_tile;  // of_tile: groups that a tile has rows of, at most

  __device__ uint32_t group(uint32_t task) const {
    return min(task / of_tile * kTileRows / p.group_rows + task % of_tile, p.rows / p.group_rows - 1);
  }
  __device__ const uint8_t* tile(uint32_t task, uint32_t) const { return p.tiles + task / of_tile * p.tile_bytes; }
  __device__ uint32_t x(uint32_t task, uint32_t) const { return group(task) * p.k; }
  __device__ void finish(uint32_t task, const TaskSums& sums) const {
    const uint32_t r = threadIdx.x % kWarp, n = task / of_tile * kTileRows + r;
    if (r < kTileRows && n / p.group_rows == group(task)) store(p, row, n, sums.of(0, r));
  }
};

template <typename Unit>
__global__ void __launch_bounds__(kRowThreads, 2)
    grouped_tasks(const CudaStep* step, const __grid_constant__ Grouped p, const __grid_constant__ TaskCut cut) {
  using Reader = TaskReader<Unit, GroupTasks>;
  uint8_t* const shared = dynamic_shared();
  release_next();
  const uint32_t row = blockIdx.y;
  if (row >= live_rows(step, p.head)) return wait_for_previous();
  const GroupTasks tasks = {p, row, groups_of_tile(p.group_rows)};
  const TaskTeam team(cut);
  Reader reader({cut, tasks, team}, run_of_share(cut, team), shared + threadIdx.x / kWarp * Reader::kBytes);
  float* partial = reinterpret_cast<float*>(shared + kTaskWarps * Reader::kBytes);
  wait_for_previous();
  const typename Unit::Input x = TaskInput<Unit>::make(reinterpret_cast<uint8_t*>(partial) + cut.partial_bytes(),
                                                       p.in + size_t{row} * p.in_width, p.k, p.rows / p.group_rows);
  run_tasks<Unit>(cut, tasks, team, reader, x, partial);
}

// ---- F8_E4M3, groups of whole blocks of threads: the rows of x in shared memory

constexpr uint32_t kGroupedWarps = 8, kGroupedThreads = kGroupedWarps * kWarp;
constexpr uint32_t kWarpSegments = 4;  // that a warp has at a time

struct DecodedCut {
  uint32_t warps;  // of a tile
  uint32_t runs;   // of segments that a warp does one after the other
  __host__ __device__ uint32_t tiles() const { return kGroupedWarps / warps; }
};

template <uint32_t kColumns>
__device__ __forceinline__ void leave(const float (&acc)[2][kColumns], float* partial) {
#pragma unroll
  for (uint32_t c = 0; c < kColumns; ++c)
    *reinterpret_cast<float2*>(partial + c * kTileRows + threadIdx.x % 8 * 2) = {acc[0][c], acc[1][c]};
}

template <uint32_t kColumns>
__global__ void __launch_bounds__(kGroupedThreads, 2)
    grouped_decoded(const CudaStep* step, const __grid_constant__ Grouped p, const __grid_constant__ DecodedCut cut) {
  auto* const x = reinterpret_cast<float*>(dynamic_shared());  // [column][k], then [tile][segment][column][row of the tile]
  release_next();
  float* partial = x + size_t{kColumns} * p.k;
  const uint32_t first_tile = blockIdx.x * cut.tiles(), warp = threadIdx.x / kWarp, own = warp / cut.warps;
  const uint8_t* tile = p.tiles + (first_tile + own) * p.tile_bytes;
  const auto segment_of = [&](uint32_t run) {
    return (run * cut.warps + warp % cut.warps) * kWarpSegments + threadIdx.x % kWarp / 8;
  };
  const auto chunks_of = [&](uint32_t segment) {
    return DecodedChunks(tile, segment_start(segment, p.segments, p.chunks), segment_start(segment + 1, p.segments, p.chunks));
  };
  uint32_t segment = segment_of(0);
  DecodedChunks chunks = chunks_of(segment);
  wait_for_previous();
  const uint32_t rows = live_rows(step, p.head), first_row = blockIdx.y * kColumns;
  if (first_row >= rows) return;
  const uint32_t columns = min(kColumns, rows - first_row), group = first_tile * kTileRows / p.group_rows;
  for (uint32_t c = 0; c < columns; ++c) {
    const float4* from = reinterpret_cast<const float4*>(p.in + size_t{first_row + c} * p.in_width + size_t{group} * p.k);
    for (uint32_t i = threadIdx.x; i < p.k / 4; i += kGroupedThreads) reinterpret_cast<float4*>(x + size_t{c} * p.k)[i] = from[i];
  }
  __syncthreads();
#pragma unroll 1
  for (uint32_t run = 0; run < cut.runs; ++run) {
    float acc[2][kColumns] = {};
    chunks.add<kColumns>(x + segment_start(segment, p.segments, p.chunks) * kChunk, p.k, acc);
    leave<kColumns>(acc, partial + (own * p.segments + segment) * kColumns * kTileRows);
    if (run + 1 < cut.runs) chunks = chunks_of(segment = segment_of(run + 1));
  }
  __syncthreads();
  for (uint32_t o = threadIdx.x; o < cut.tiles() * columns * kTileRows; o += kGroupedThreads) {
    const uint32_t r = o % kTileRows, c = o / kTileRows % columns, t = o / kTileRows / columns;
    const float* sums = partial + (t * p.segments * kColumns + c) * kTileRows + r;
    store(p, first_row + c, (first_tile + t) * kTileRows + r, tree_of_segments(sums, p.segments, kColumns * kTileRows));
  }
}

DecodedCut cut_decoded(uint32_t segments) {
  DecodedCut cut;
  cut.warps = std::min(segments / kWarpSegments, kGroupedWarps);
  cut.runs = segments / kWarpSegments / cut.warps;
  return cut;
}
// REQUIRES: whole blocks of threads in a group.
template <uint32_t kColumns>
bool launch_decoded(const CudaLaunch& on, const CudaStep* step, uint32_t rows, const Grouped& p) {
  constexpr size_t kMost = 200 * 1024;
  const DecodedCut cut = cut_decoded(p.segments);
  const size_t shared = kColumns * (size_t{p.k} + cut.tiles() * p.segments * kTileRows) * sizeof(float);
  if (shared > kMost) return false;
  const auto kernel = grouped_decoded<kColumns>;
  allow_shared(kernel, kMost);
  launch(on, kernel, dim3(p.rows / (cut.tiles() * kTileRows), (rows + kColumns - 1) / kColumns), kGroupedThreads, shared, step, p, cut);
  return true;
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_grouped(const CudaLaunch& on, const CudaStep* step, const CudaRowOp& op) {
  const PackedMatrix& m = op.matrix;
  const uint32_t groups = std::get<GroupedSpec>(op.spec).groups;
  const cuda::Grouped p = {op.in, op.out, m.data, m.tile_bytes(), op.in_width, op.out_width, m.cols, m.rows, m.rows / groups,
                           segment_count(m.cols, m.input != ActKind::f32), chunk_count(m.cols), op.head, op.rounded};
  if (m.format == Format::e4m3 && m.input == ActKind::f32 && p.group_rows % (cuda::cut_decoded(p.segments).tiles() * kTileRows) == 0) {
    if (op.rows > 1 && cuda::launch_decoded<4>(on, step, op.rows, p)) return;
    if (cuda::launch_decoded<1>(on, step, op.rows, p)) return;
  }
  const bool done = m.input != ActKind::f32 && cuda::with_task_unit(m, [&]<typename Unit>() {
    const cuda::TaskCut cut = cuda::cut_tasks(p.k, m.tiles() * cuda::groups_of_tile(p.group_rows), 1, on.processors);
    cuda::launch_tasks<Unit, cuda::GroupTasks>(on, cuda::grouped_tasks<Unit>, op.rows, groups, step, p, cut);
  });
  if (done) return;
  cuda::with_elements(m.format, [&]<Format kFormat>() {
    cuda::launch(on, cuda::grouped_elements<kFormat>, dim3(m.tiles(), op.rows), p.segments * kTileRows, 0, step, p);
  });
}

}  // namespace stet
