// Products with one row of activations: a warp (of float weights half a warp) has a segment of a tile. Every block of
// threads makes the activations itself, so that nothing stands between two products; its rings are full before it
// waits.
#include "base/cuda/warp_ring.cuh"
#include "kernels/matvec/matvec_kinds_cuda.h"
#include "kernels/matvec/matvec_shape.cuh"
#include "kernels/matvec/row_unit.cuh"

namespace stet::cuda {
namespace {

constexpr uint32_t kRowWarps = kRowThreads / kWarp;
constexpr uint32_t kBuffers = 4;  // of partial sums, one a round
constexpr uint32_t kBufferFloats = kRowWarps * kTileRows;

struct RowCut {
  uint32_t tiles, k, segments, chunks;
  uint32_t slots;    // tiles of a round
  uint32_t warps;    // of a tile
  uint32_t per_run;  // segments that follow each other: 1 or 2
  // Of the matrices: tiles are counted over all of them, gate and up of a gated launch each for itself.
  uint32_t first_tile[kCudaMatrices];      // beyond the last matrix: more than there are
  const uint8_t* tiles_of[kCudaMatrices];  // where tile 0 would be
  float* out_of[kCudaMatrices];            // where row 0 would be
  uint32_t end_row[kCudaMatrices];

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
  // The warp that makes them.
  __device__ uint32_t finisher(uint32_t round) const { return (gated && slots == 1 ? round / 2 : round) % kRowWarps; }
};

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

template <Format kFormat, uint32_t kStages>
class RowReader {
 public:
  using Unit = RowUnit<kFormat>;
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
    tile_ = p_.gated ? ((t & 1u) == 0 ? cut_.tiles_of[0] : cut_.tiles_of[1]) + (t >> 1) * p_.tile_bytes
                     : cut_.of_tile(t, cut_.tiles_of) + t * p_.tile_bytes;
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

// The tree over what the segments of a run give.
template <Format kFormat, uint32_t kStages>
__device__ __forceinline__ typename RowUnit<kFormat>::Sums sum_of_run(
    RowReader<kFormat, kStages>& reader, const Segments<RowUnit<kFormat>::kSegments == 2>& segments, uint32_t runs,
    const RowInput& x) {
  using Unit = RowUnit<kFormat>;
  const uint32_t per_run = Unit::kSegments == 2 ? runs : 1;
  typename Unit::Sums left = {}, sums = {};
#pragma unroll 1
  for (uint32_t j = 0; j < per_run; ++j) {
    left = sums;
    sums = {};
    const Segment s = segments.of(j);
    const uint32_t longest = segments.longest(j);
#pragma unroll 1
    for (uint32_t at = 0; at < longest; at += Unit::kColumns) {
      const uint8_t* unit = reader.next();
      if (at < s.length) Unit::add(unit, min(Unit::kColumns, s.length - at), x, s.begin + at, sums);
      reader.done();
    }
  }
  return per_run == 2 ? Unit::joined(left, sums) : sums;
}

// Partial sums of the tiles of a few rounds, [warp][row] each. Warps that leave theirs go on; one comes back for all of
// them.
class Partials {
 public:
  static constexpr uint32_t kBytes = kBuffers * (kBufferFloats * 4 + 16);
  __device__ explicit Partials(uint8_t* memory)
      : floats_(reinterpret_cast<float*>(memory)), full_(shared_address(memory + kBuffers * kBufferFloats * 4)) {}
  // By one thread, before a barrier of the block.
  __device__ void init() const {
    for (uint32_t i = 0; i < kBuffers; ++i) barrier_init(full_ + i * 8, kRowWarps), barrier_init(empty(i), 1);
  }
  __device__ float* of(uint32_t round) const { return floats_ + round % kBuffers * kBufferFloats; }
  // By every warp: the buffer may be written; it was.
  __device__ void begin(uint32_t round) const {
    if (round >= kBuffers) barrier_wait(empty(round % kBuffers), (round / kBuffers - 1) & 1u);
  }
  __device__ void left(uint32_t round) const {
    __syncwarp();
    if (threadIdx.x % kWarp == 0) barrier_arrive(full_ + round % kBuffers * 8);
  }
  // By one warp: every warp has left its sums; they were read.
  __device__ void wait(uint32_t round) const { barrier_wait(full_ + round % kBuffers * 8, (round / kBuffers) & 1u); }
  __device__ void read(uint32_t round) const {
    __syncwarp();
    if (threadIdx.x % kWarp == 0) barrier_arrive(empty(round % kBuffers));
  }

 private:
  __device__ uint32_t empty(uint32_t i) const { return full_ + (kBuffers + i) * 8; }
  float* floats_;
  uint32_t full_;
};

// The outputs of a round, or of two where gate and up are in two, by one warp. Half h has the tile of slot h, or gate
// and up, or a share.
class Finisher {
 public:
  __device__ Finisher(const CudaProduct& p, const RowCut& cut, const Schedule& schedule, const Partials& partials)
      : p_(p),
        cut_(cut),
        schedule_(schedule),
        partials_(partials),
        row_(threadIdx.x % kTileRows),
        h_(threadIdx.x % kWarp / 16) {}

  // Finds where the round's output goes; what it is added to is on its way early.
  __device__ void begin(uint32_t round) {
    const uint32_t t = schedule_.tile(gate(round), schedule_.slots == 2 && !p_.gated ? h_ : 0);
    out_ = nullptr;
    if (t >= cut_.tiles || (h_ == 1 && (p_.gated || schedule_.slots == 1))) return;
    const uint32_t row = (p_.gated ? t >> 1 : t) * kTileRows + row_;
    if (row >= (p_.gated ? cut_.end_row[0] : cut_.of_tile(t, cut_.end_row))) return;
    out_ = (p_.gated ? cut_.out_of[0] : cut_.of_tile(t, cut_.out_of)) + row;
    if (p_.accumulate) old_ = __ldcg(out_);
  }
  __device__ void end(uint32_t round) {
    if (gate(round) != round) partials_.wait(gate(round));
    partials_.wait(round);
    float sum;
    if (schedule_.slots == 2) {
      sum = tree_sum(partials_.of(round) + h_ * cut_.warps * kTileRows + row_, cut_.warps, kTileRows);
    } else if (p_.gated) {
      sum = tree_sum(partials_.of(gate(round) + h_) + row_, cut_.warps, kTileRows);
    } else {
      sum = tree_sum(partials_.of(round) + h_ * (cut_.warps / 2) * kTileRows + row_, cut_.warps / 2, kTileRows);
      sum = __fadd_rn(sum, __shfl_xor_sync(kAll, sum, 16));
    }
    if (gate(round) != round) partials_.read(gate(round));
    partials_.read(round);
    if (p_.gated) sum = __fmul_rn(silu(sum), __shfl_xor_sync(kAll, sum, 16));
    if (out_ != nullptr) *out_ = p_.accumulate ? __fadd_rn(old_, sum) : sum;
  }

 private:
  __device__ uint32_t gate(uint32_t round) const { return p_.gated && schedule_.slots == 1 ? round - 1 : round; }

  const CudaProduct& p_;
  const RowCut& cut_;
  const Schedule& schedule_;
  const Partials& partials_;
  const uint32_t row_, h_;
  float* out_ = nullptr;
  float old_ = 0.0f;
};

template <Format kFormat, uint32_t kStages>
__global__ void __launch_bounds__(kRowThreads, 2)
    row_product(const CudaStep* step, const __grid_constant__ CudaProduct p, const __grid_constant__ RowCut cut) {
  using Unit = RowUnit<kFormat>;
  using Reader = RowReader<kFormat, kStages>;
  using Ring = typename Reader::Ring;
  extern __shared__ __align__(128) uint8_t shared[];
  release_next();
  const uint32_t warp = threadIdx.x / kWarp, slot = warp / cut.warps;
  uint8_t* barriers = shared + kRowWarps * Ring::kBytes;
  const Partials partials(barriers + kRowWarps * Ring::kBarrierBytes);
  if (threadIdx.x == 0) partials.init();
  const RowInput x = row_input(barriers + kRowWarps * Ring::kBarrierBytes + Partials::kBytes, cut.k, Unit::kInteger);
  const Schedule schedule(p, cut);
  const uint32_t half = Unit::kSegments == 2 ? threadIdx.x % kWarp / 16 : 0;
  const Segments<Unit::kSegments == 2> segments(cut, (warp % cut.warps * Unit::kSegments + half) * cut.per_run);
  Reader reader(p, cut, schedule, segments, slot,
                Ring(shared + warp * Ring::kBytes, barriers + warp * Ring::kBarrierBytes));
  const bool nothing = (p.head ? step->head_rows : step->rows) == 0;
  const float* in = p.source.in + (p.source.from_head ? size_t{step->head_first} * cut.k : 0);
  RowMaker<Unit::kInteger> maker(x, p.source, in, cut.k);
  maker.fetch();
  wait_for_previous();
  if (nothing) return reader.drain();
  maker.make([](float d, int32_t sum) { return Unit::second(d, sum); });

  Finisher finisher(p, cut, schedule, partials);
#pragma unroll 1
  for (uint32_t round = 0; round < schedule.rounds; ++round) {
    const bool finishes = warp == schedule.finisher(round) && schedule.ends_task(round);
    if (finishes) finisher.begin(round);
    if (slot < cut.slots && schedule.tile(round, slot) < cut.tiles) {
      const typename Unit::Sums sums = sum_of_run<kFormat, kStages>(reader, segments, cut.per_run, x);
      partials.begin(round);
      Unit::leave(sums, partials.of(round) + warp * kTileRows);
    } else {
      partials.begin(round);
    }
    partials.left(round);
    if (finishes) finisher.end(round);
  }
}

template <Format kFormat, uint32_t kStages>
size_t shared_bytes(const CudaProduct& p) {
  using Ring = typename RowReader<kFormat, kStages>::Ring;
  return kRowWarps * (Ring::kBytes + Ring::kBarrierBytes) + Partials::kBytes +
         row_input_bytes(p.k, RowUnit<kFormat>::kInteger);
}

template <Format kFormat, uint32_t kStages>
void launch_stages(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p, const RowCut& cut) {
  const size_t shared = std::max(kPairShared, shared_bytes<kFormat, kStages>(p));
  const auto kernel = row_product<kFormat, kStages>;
  allow_shared(kernel, shared);
  launch(on, kernel, dim3(on.processors), kRowThreads, shared, step, p, cut);
}

void place_matrices(const CudaProduct& p, RowCut& cut) {
  uint32_t tiles = 0;
  for (uint32_t i = 0; i < kCudaMatrices; ++i) {
    cut.first_tile[i] = i < p.matrices && !p.gated ? tiles : UINT32_MAX;
    if (i >= p.matrices) continue;
    const CudaMatrix& m = p.matrix[i];
    const size_t first = p.gated ? 0 : tiles;
    cut.tiles_of[i] = m.data - first * p.tile_bytes;
    cut.out_of[i] = m.out - first * kTileRows;
    cut.end_row[i] = static_cast<uint32_t>(first * kTileRows) + m.rows;
    tiles += (m.rows + kTileRows - 1) / kTileRows;
  }
  cut.tiles = tiles;
}

template <Format kFormat>
void launch_row(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  constexpr uint32_t kSegments = RowUnit<kFormat>::kSegments;
  RowCut cut = {};
  place_matrices(p, cut);
  cut.k = p.k;
  cut.segments = segment_count(p.k, RowUnit<kFormat>::kInteger);
  cut.chunks = chunk_count(p.k);
  cut.warps = std::min(kRowWarps, cut.segments / kSegments);
  cut.per_run = cut.segments / (kSegments * cut.warps);
  // Two tiles at a time, unless blocks of threads would stay without one.
  cut.slots = 2 * cut.warps <= kRowWarps && (p.gated || cut.tiles > on.processors) ? 2 : 1;
  constexpr size_t kMost = 227 * 1024;
  constexpr uint32_t kDeep = 2;
  if (shared_bytes<kFormat, kDeep>(p) <= kMost) return launch_stages<kFormat, kDeep>(on, step, p, cut);
  if (shared_bytes<kFormat, 1>(p) > kMost) fail_cuda_shape("columns of a matrix", p.k, "use --device cpu");
  launch_stages<kFormat, 1>(on, step, p, cut);
}

}  // namespace
}  // namespace stet::cuda

namespace stet {

void launch_row_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  switch (p.format) {
#define FORMAT(id, name, ggml) \
  case Format::id:             \
    return cuda::launch_row<Format::id>(on, step, p);
#include "formats/formats.def"
#undef FORMAT
  }
}

}  // namespace stet
