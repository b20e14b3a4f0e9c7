// How products of few rows are cut: rounds of tiles, a warp a segment, and what each warp reads.
#pragma once

#include "base/cuda/warp_ring.cuh"
#include "kernels/matvec/matvec_shape.cuh"
#include "kernels/quantize/row_input_cuda.cuh"

namespace stet::cuda {

constexpr uint32_t kRowWarps = kRowThreads / kWarp;

struct RowCut {
  uint32_t tiles, k, segments, chunks;
  uint32_t slots;    // tiles of a round
  uint32_t warps;    // of a tile
  uint32_t per_run;  // segments that follow each other: 1 or 2
  // Of the matrices: tiles are counted over all of them, gate and up of a gated launch each for itself.
  uint32_t first_tile[kCudaMatrices];      // beyond the last matrix: more than there are
  const uint8_t* tiles_of[kCudaMatrices];  // where tile 0 would be
  float* out_of[kCudaMatrices];            // where row 0 would be
  uint32_t end_row[kCudaMatrices], width_of[kCudaMatrices];

  // The matrix of tile t. (Written so that nothing of a launch's arguments is read through a pointer.)
  template <typename T>
  __device__ T of_tile(uint32_t t, const T (&x)[kCudaMatrices]) const {
    T value = x[0];
#pragma unroll
    for (uint32_t i = 1; i < kCudaMatrices; ++i)
      if (t >= first_tile[i]) value = x[i];
    return value;
  }
};

// segments: of K; together: that a warp works on at a time.
inline RowCut cut_rows(const CudaProduct& p, uint32_t together, uint32_t segments, uint32_t processors) {
  RowCut cut = {};
  for (uint32_t i = 0; i < kCudaMatrices; ++i) {
    cut.first_tile[i] = i < p.matrices && !p.gated ? cut.tiles : UINT32_MAX;
    if (i >= p.matrices) continue;
    const CudaMatrix& m = p.matrix[i];
    const uint32_t first = p.gated ? 0 : cut.tiles;
    cut.tiles_of[i] = m.data - first * p.tile_bytes;
    cut.out_of[i] = m.out - size_t{first} * kTileRows;
    cut.end_row[i] = first * kTileRows + m.rows;
    cut.width_of[i] = m.width;
    cut.tiles += (m.rows + kTileRows - 1) / kTileRows;
  }
  cut.k = p.k;
  cut.segments = segments;
  cut.chunks = chunk_count(p.k);
  cut.warps = std::min(kRowWarps, segments / together);
  cut.per_run = segments / (together * cut.warps);
  // Two tiles at a time, unless blocks of threads would stay without one.
  cut.slots = 2 * cut.warps <= kRowWarps && (p.gated || cut.tiles > processors) ? 2 : 1;
  return cut;
}

// Tiles that a block of threads takes, in order: `slots` of them a round. Gate and up of a tile follow each other.
struct Schedule {
  uint32_t slots, rounds;
  bool gated;
  __device__ Schedule(const CudaProduct& p, const RowCut& cut) : slots(cut.slots), gated(p.gated) {
    const uint32_t tasks = gated ? cut.tiles / 2 : cut.tiles;
    const uint32_t own = blockIdx.x < tasks ? (tasks - blockIdx.x + gridDim.x - 1) / gridDim.x : 0,
                   tiles = gated ? 2 * own : own;
    rounds = (tiles + slots - 1) / slots;
  }
  __device__ uint32_t tile(uint32_t round, uint32_t slot) const {
    const uint32_t i = round * slots + slot;
    return gated ? 2 * (blockIdx.x + gridDim.x * (i >> 1)) + (i & 1u) : blockIdx.x + gridDim.x * i;
  }
  // Whether outputs come of this round: of gate and up in two rounds, of the second.
  __device__ bool ends_task(uint32_t round) const { return !gated || slots == 2 || (round & 1u) != 0; }
  // Which of `outputs` rows of x this warp makes them for; one that is not below `outputs`: of none.
  __device__ uint32_t output_of(uint32_t warp, uint32_t round, uint32_t outputs) const {
    const uint32_t task = gated && slots == 1 ? round / 2 : round;
    return (warp - task * outputs) % kRowWarps;
  }
};

// Where tile t of a launch lies.
__device__ __forceinline__ const uint8_t* tile_address(const CudaProduct& p, const RowCut& cut, uint32_t t) {
  return p.gated ? ((t & 1u) == 0 ? cut.tiles_of[0] : cut.tiles_of[1]) + (t >> 1) * p.tile_bytes
                 : cut.of_tile(t, cut.tiles_of) + t * p.tile_bytes;
}

// Columns of a segment.
struct Segment {
  uint32_t begin, length;
  __device__ Segment() : begin(0), length(0) {}
  __device__ Segment(const RowCut& cut, uint32_t s) : begin(segment_start(s, cut.segments, cut.chunks) * kChunk) {
    const uint32_t end = min(segment_start(s + 1, cut.segments, cut.chunks) * kChunk, cut.k);
    length = end > begin ? end - begin : 0;
  }
};

// The segments of a lane, and how many columns its warp has to walk for each.
template <bool kHalves>
class Segments {
 public:
  __device__ Segments(const RowCut& cut, uint32_t first) : first_(cut, first), longest_(first_.length), other_(0) {
    if constexpr (kHalves) {
      if (cut.per_run == 2) second_ = Segment(cut, first + 1);
      longest_ = __reduce_max_sync(kAll, first_.length);
      other_ = __reduce_max_sync(kAll, second_.length);
    }
  }
  __device__ Segment of(uint32_t j) const { return !kHalves || j == 0 ? first_ : second_; }
  __device__ uint32_t longest(uint32_t j) const { return !kHalves || j == 0 ? longest_ : other_; }

 private:
  Segment first_, second_;
  uint32_t longest_, other_;
};

// What a warp reads, in order, through a ring of its own.
template <typename Unit, uint32_t kStages>
class RowReader {
 public:
  using Ring = WarpRing<kStages, Unit::kSegments, Unit::kBytes>;
  static constexpr bool kHalves = Unit::kSegments == 2;

  __device__ RowReader(const CudaProduct& p, const RowCut& cut, const Schedule& schedule,
                       const Segments<kHalves>& segments, uint32_t slot, Ring ring)
      : p_(p), cut_(cut), schedule_(schedule), segments_(segments), slot_(slot), ring_(ring) {
    more_ = segments.longest(0) + (kHalves ? segments.longest(1) : 0) > 0 && find_tile();
    if (more_) open();
#pragma unroll 1
    for (uint32_t i = 0; i < kStages && more_; ++i) request();
  }
  __device__ const uint8_t* next() { return ring_.wait(); }
  __device__ void done() {
    ring_.release();
    if (more_) request();
  }
  __device__ void drain() { ring_.drain(); }

 private:
  __device__ bool find_tile() {
    if (round_ >= schedule_.rounds || slot_ >= cut_.slots) return false;
    const uint32_t t = schedule_.tile(round_, slot_);
    if (t >= cut_.tiles) return false;
    tile_ = tile_address(p_, cut_, t);
    return true;
  }
  __device__ void open() {
    if (kHalves && segment_ == 0 && segments_.longest(0) == 0) segment_ = 1;
    at_ = 0;
  }
  __device__ void request() {
    const Segment s = segments_.of(segment_);
    const uint32_t columns = at_ < s.length ? min(Unit::kColumns, s.length - at_) : 0;
    ring_.request(tile_ + Unit::offset(s.begin + at_), Unit::bytes(columns));
    at_ += Unit::kColumns;
    if (at_ >= segments_.longest(segment_)) advance();
  }
  __device__ void advance() {
    if (kHalves && segment_ == 0 && segments_.longest(1) != 0) {
      segment_ = 1;
    } else {
      segment_ = 0;
      ++round_;
      more_ = find_tile();
    }
    open();
  }

  const CudaProduct& p_;
  const RowCut& cut_;
  const Schedule& schedule_;
  const Segments<kHalves>& segments_;
  const uint32_t slot_;
  uint32_t round_ = 0, segment_ = 0, at_ = 0;
  bool more_ = false;
  const uint8_t* tile_ = nullptr;
  Ring ring_;
};

}  // namespace stet::cuda
