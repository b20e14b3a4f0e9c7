// Products through planes (plane_unit.cuh). Warps of a block work in teams; a team takes tiles, its warps share the segments of a
// tile, each a run of neighbours that it joins itself. The rings of all warps are full before the kernel waits for its predecessor.
#pragma once

#include "base/cuda/warp_ring.cuh"
#include "kernels/matvec/plane_inputs.cuh"
#include "kernels/matvec/row_schedule.cuh"

namespace stet::cuda {

// The chunks that a warp reads, in order: begin .. end - 1 of every tile of its team.
template <typename Unit, uint32_t kStages>
class PlaneReader {
 public:
  using Ring = WarpRing<kStages, 1, Unit::kBytes>;
  __device__ PlaneReader(const CudaProduct& p, const RowCut& cut, const Team& team, uint32_t begin, uint32_t end, Ring ring)
      : p_(p), cut_(cut), teams_(team.teams), begin_(begin), end_(end), tile_(team.index), asked_(begin), used_(begin),
        ring_(ring) {
    open();
#pragma unroll 1
    for (uint32_t i = 0; i < kStages; ++i) request();
  }
  // The next chunk, when it is there.
  __device__ const uint8_t* next() {
    if (in_unit_ == 0) unit_ = ring_.wait();
    return unit_ + in_unit_ * Unit::kChunkBytes;
  }
  // The chunk of next() was used.
  __device__ void done() {
    ++in_unit_, ++used_;
    if (in_unit_ < Unit::kChunks && used_ < end_) return;
    ring_.release();
    request();
    in_unit_ = 0;
    if (used_ == end_) used_ = begin_;
  }
  __device__ void drain() { ring_.drain(); }

 private:
  __device__ void open() {
    more_ = begin_ < end_ && tile_ < cut_.tiles;
    if (more_) at_ = cut_.of_tile(tile_, cut_.tiles_of) + tile_ * p_.tile_bytes;
  }
  __device__ void request() {
    if (!more_) return;
    const uint32_t column = asked_ * kChunk, limit = min(end_ * kChunk, cut_.k);
    ring_.request(at_ + Unit::offset(column), Unit::bytes(min(Unit::kColumns, limit - column)));
    asked_ += Unit::kChunks;
    if (asked_ < end_) return;
    asked_ = begin_;
    tile_ += teams_;
    open();
  }

  const CudaProduct& p_;
  const RowCut& cut_;
  const uint32_t teams_, begin_, end_;
  uint32_t tile_, asked_, used_, in_unit_ = 0;
  bool more_ = false;
  const uint8_t *at_ = nullptr, *unit_ = nullptr;
  Ring ring_;
};

// The subtree over segments first .. first + cut.per_run - 1 of a tile; per_run a power of two, at most 16.
template <typename Unit, uint32_t kStages>
__device__ __forceinline__ typename Unit::Sums sum_of_run(PlaneReader<Unit, kStages>& reader, const RowCut& cut, uint32_t first,
                                                          const PlaneInput& x) {
  typename Unit::Sums sums, left[4];
#pragma unroll 1
  for (uint32_t i = 0; i < cut.per_run; ++i) {
    sums = {};
    const uint32_t end = segment_start(first + i + 1, cut.segments, cut.chunks);
#pragma unroll 1
    for (uint32_t c = segment_start(first + i, cut.segments, cut.chunks); c < end; ++c) {
      Unit::add(reader.next(), min(kChunk, cut.k - c * kChunk), x, c * kChunk, sums);
      reader.done();
    }
    bool open = true;
#pragma unroll
    for (uint32_t l = 0; l < 4; ++l) {
      if (!open) continue;
      if ((i >> l & 1u) != 0) {
        sums = Unit::joined(left[l], sums);
      } else {
        left[l] = sums;
        open = false;
      }
    }
  }
  return sums;
}

// What the warps of a team left for tile t becomes outputs: partial[warp][row of x][row of the tile].
template <typename Unit>
__device__ __forceinline__ void store_tile(const CudaProduct& p, const RowCut& cut, const Team& team, uint32_t t,
                                           uint32_t first_row, uint32_t rows, const float* partial) {
  const uint32_t end_row = cut.of_tile(t, cut.end_row), width = cut.of_tile(t, cut.width_of);
  float* const out = cut.of_tile(t, cut.out_of);
  for (uint32_t o = team.thread; o < rows * kTileRows; o += team.threads()) {
    const uint32_t row = t * kTileRows + o % kTileRows;
    if (row >= end_row) continue;
    const float sum = tree_sum(partial + o, team.warps, Unit::kOutputs * kTileRows), result = p.rounded ? rounded_bf16(sum) : sum;
    float* to = out + size_t{first_row + o / kTileRows} * width + row;
    *to = p.accumulate ? __fadd_rn(*to, result) : result;
  }
}

// Of rows first_row .. first_row + Unit::kOutputs - 1 of x, as far as they are there.
template <typename Unit, typename Maker, uint32_t kStages>
__global__ void __launch_bounds__(kRowThreads, Unit::kOutputs == 1 ? 2 : 1)
    plane_product(const CudaStep* step, const __grid_constant__ CudaProduct p, const __grid_constant__ RowCut cut,
                  uint32_t first_row) {
  using Reader = PlaneReader<Unit, kStages>;
  using Ring = typename Reader::Ring;
  constexpr uint32_t kPartial = Unit::kOutputs * kTileRows;  // floats of a warp
  extern __shared__ __align__(128) uint8_t shared[];
  release_next();
  Team team(cut.warps);
  team.index = threadIdx.x / kWarp / team.warps * gridDim.x + blockIdx.x;  // few tiles go to many processors
  const uint32_t warp = threadIdx.x / kWarp, first = team.warp * cut.per_run;
  uint8_t* barriers = shared + kRowWarps * Ring::kBytes;
  float* partials = reinterpret_cast<float*>(barriers + kRowWarps * Ring::kBarrierBytes);
  Reader reader(p, cut, team, segment_start(first, cut.segments, cut.chunks),
                segment_start(first + cut.per_run, cut.segments, cut.chunks),
                Ring(shared + warp * Ring::kBytes, barriers + warp * Ring::kBarrierBytes));
  Maker maker(reinterpret_cast<uint8_t*>(partials + 2 * kRowWarps * kPartial), p, step, cut.k);
  maker.fetch();
  wait_for_previous();
  const uint32_t all = p.head ? step->head_rows : step->rows;
  if (all <= first_row) return reader.drain();
  const uint32_t rows = min(all - first_row, Unit::kOutputs);
  maker.make(p, first_row, rows);
  const PlaneInput x = maker.input();
  float* of_team = partials + (warp - team.warp) * kPartial;
#pragma unroll 1
  for (uint32_t t = team.index, turn = 0; t < cut.tiles; t += team.teams, turn ^= 1) {
    float* of_turn = of_team + turn * kRowWarps * kPartial;
    Unit::leave(sum_of_run<Unit, kStages>(reader, cut, first, x), of_turn + team.warp * kPartial);
    team.sync();
    store_tile<Unit>(p, cut, team, t, first_row, rows, of_turn);
  }
}

constexpr uint32_t kPlaneStages = 2;

// Of a block of threads.
template <typename Unit, typename Maker>
size_t plane_shared_bytes(uint32_t k) {
  using Ring = typename PlaneReader<Unit, kPlaneStages>::Ring;
  const size_t bytes =
      kRowWarps * (Ring::kBytes + Ring::kBarrierBytes + 2 * Unit::kOutputs * kTileRows * sizeof(float)) + Maker::bytes(k);
  return std::max(kPairShared, bytes);
}

// Warps of a team: few passes over the tiles, each short. What a tile costs beside its chunks is as much as a part of a chunk; more where
// warps wait for each other.
inline uint32_t plane_team_warps(const RowCut& cut, uint32_t processors) {
  constexpr double kAlone = 0.2, kTogether = 0.4;
  uint32_t best = 1;
  double best_cost = 1e30;
  for (uint32_t warps = 1; warps <= std::min(kRowWarps, cut.segments); warps *= 2) {
    const uint32_t teams = processors * (kRowWarps / warps);
    const double cost = static_cast<double>((cut.tiles + teams - 1) / teams) *
                        ((cut.chunks + warps - 1) / warps + (warps == 1 ? kAlone : kTogether));
    if (cost < best_cost) best_cost = cost, best = warps;
  }
  return best;
}

template <typename Unit, typename Maker>
void launch_planes(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  const size_t shared = plane_shared_bytes<Unit, Maker>(p.k);
  const auto kernel = plane_product<Unit, Maker, kPlaneStages>;
  allow_shared(kernel, shared);
  RowCut cut = cut_rows(p, 1, segment_count(p.k, true), on.processors);
  cut.warps = plane_team_warps(cut, on.processors);
  cut.per_run = cut.segments / cut.warps;
  for (uint32_t first_row = 0; first_row < p.rows; first_row += Unit::kOutputs)
    launch(on, kernel, dim3(on.processors), kRowThreads, shared, step, p, cut, first_row);
}

}  // namespace stet::cuda
