// A matrix whose rows lie in groups, each of which is multiplied with its own run of the input.
#include "formats/element_cuda.cuh"
#include "kernels/matvec/decoded_e4m3.cuh"
#include "kernels/matvec/matvec_shape.cuh"
#include "kernels/rounding/round_value.h"
#include "replay/cuda/row_op_cuda.h"

namespace stet::cuda {
namespace {

struct Grouped {
  const float* in;  // [row][in_width]
  float* out;       // [row][out_width]
  const uint8_t* tiles;
  uint64_t tile_bytes;
  uint32_t in_width, out_width, k, rows, group_rows, segments, chunks;
  bool head, rounded;
};

__device__ __forceinline__ uint32_t live_rows(const CudaStep* step, const Grouped& p) { return p.head ? step->head_rows : step->rows; }

// Segments lie one behind the other, `stride` floats apart.
__device__ __forceinline__ void finish(const Grouped& p, const float* partial, uint32_t stride, uint32_t row, uint32_t n) {
  if (n >= p.rows) return;
  const float sum = p.segments == 64 ? tree_of<64>(partial, stride) : tree_sum(partial, p.segments, stride);
  p.out[size_t{row} * p.out_width + n] = p.rounded ? rounded_bf16(sum) : sum;
}

// ---- any format that is read as floats, groups of any size: a thread has a row and a segment of a tile

template <Format kFormat>
__global__ void __launch_bounds__(1024) grouped_elements(const CudaStep* step, const __grid_constant__ Grouped p) {
  __shared__ float partial[kMaxSegments * kTileRows];
  release_next();
  wait_for_previous();
  const uint32_t row = blockIdx.y;
  if (row >= live_rows(step, p)) return;
  const uint32_t r = threadIdx.x % kTileRows, segment = threadIdx.x / kTileRows, n = blockIdx.x * kTileRows + r;
  const uint32_t begin = segment_start(segment, p.segments, p.chunks) * kChunk;
  const uint32_t end = min(segment_start(segment + 1, p.segments, p.chunks) * kChunk, p.k);
  const uint8_t* tile = p.tiles + blockIdx.x * p.tile_bytes;
  const float* x = p.in + size_t{row} * p.in_width + size_t{min(n, p.rows - 1) / p.group_rows} * p.k;
  float sum = 0.0f;
#pragma unroll 4
  for (uint32_t k = begin; k < end; ++k) sum = __fmaf_rn(packed_element<kFormat>(tile, p.k, r, k), x[k], sum);
  partial[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x < kTileRows) finish(p, partial + r, kTileRows, row, n);
}

template <Format kFormat>
void launch_elements(const CudaLaunch& on, const CudaStep* step, uint32_t rows, const Grouped& p) {
  if constexpr (kHasElements<kFormat>)
    launch(on, grouped_elements<kFormat>, dim3((p.rows + kTileRows - 1) / kTileRows, rows), p.segments * kTileRows, 0, step, p);
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
  extern __shared__ __align__(16) float x[];  // [column][k], then [tile][segment][column][row of the tile]
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
  const uint32_t rows = live_rows(step, p), first_row = blockIdx.y * kColumns;
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
    finish(p, partial + (t * p.segments * kColumns + c) * kTileRows + r, kColumns * kTileRows, first_row + c, (first_tile + t) * kTileRows + r);
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
  if (m.format == Format::e4m3 && p.group_rows % (cuda::cut_decoded(p.segments).tiles() * kTileRows) == 0) {
    if (op.rows > 1 && cuda::launch_decoded<4>(on, step, op.rows, p)) return;
    if (cuda::launch_decoded<1>(on, step, op.rows, p)) return;
  }
  switch (m.format) {
#define FORMAT(id, name, ggml) \
  case Format::id:             \
    return cuda::launch_elements<Format::id>(on, step, op.rows, p);
#include "formats/formats.def"
#undef FORMAT
  }
}

}  // namespace stet
