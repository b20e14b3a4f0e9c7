// Products of many rows with float weights: f32 fma, every output and segment one chain in k order. A thread holds
// eight rows of weights times kColumns rows of x in registers; a warp, four such rows times eight. Weights become f32
// on their way out of shared memory. The ring of stages is that of the integer products, a stage being kStep columns of
// K.
#pragma once

#include "formats/each_cuda.cuh"
#include "formats/pack.h"
#include "kernels/matvec/matvec_wide_ring.cuh"

namespace stet::cuda {

// What a block of threads takes, and how many blocks share a processor. A warp has eight threads along x, of
// kColumns / 8 groups each.
template <uint32_t kWarpsM_, uint32_t kWarpsN_, uint32_t kColumns_, uint32_t kBlocks_>
struct WideFloatShape {
  static constexpr uint32_t kWarpsM = kWarpsM_, kWarpsN = kWarpsN_, kColumns = kColumns_, kBlocks = kBlocks_;
  static constexpr uint32_t kRows = 8;                     // of weights, a thread
  static constexpr uint32_t kTiles = 2 * kWarpsM;          // of weights
  static constexpr uint32_t kGroups = kWarpsN * kColumns;  // of x
  static constexpr uint32_t kThreads = kWarpsM * kWarpsN * kWarp;
  static constexpr uint32_t kSlots = kRows * kColumns / 4;
  static constexpr uint32_t kStep = 16;               // columns of K, a stage
  static constexpr uint32_t kUnroll = 32 / kColumns;  // of those; more was slower
  using Joined = Exchange<kSlots, kThreads>;
  using Waiting = WaitingSums<1, 6, kSlots, kThreads>;
};

template <Format kFormat, typename Shape>
struct WideFloatStage {
  using Element = typename CudaWeights<kFormat>::Element;
  static constexpr uint32_t kColumnBytes = kTileRows * sizeof(Element), kXColumnBytes = kCudaGroup * sizeof(float);
  // The bytes behind a tile and a group keep those that a warp reads together in different banks.
  static constexpr uint32_t kTileBytes = Shape::kStep * kColumnBytes + 32,
                            kGroupBytes = Shape::kStep * kXColumnBytes + 16;
  static constexpr uint32_t kX = Shape::kTiles * kTileBytes;
  static constexpr uint32_t kBytes = kX + Shape::kGroups * kGroupBytes;
  static constexpr uint32_t kStages = stages_that_fit(kBytes, Shape::Waiting::kBytes, Shape::kBlocks);
  static_assert(kStages >= 2);
};

template <Format kFormat, typename Shape>
class WideFloatReader
    : public WideRing<WideFloatReader<kFormat, Shape>, Shape, WideFloatStage<kFormat, Shape>, Shape::kStep> {
  using Stage = WideFloatStage<kFormat, Shape>;
  using Ring = WideRing<WideFloatReader<kFormat, Shape>, Shape, Stage, Shape::kStep>;
  friend Ring;

 public:
  __device__ WideFloatReader(const CudaProduct& p, const WideCut& cut, const WidePart& part, uint8_t* ring)
      : Ring(p, cut, part, part.begin * kChunk, min(part.end * kChunk, cut.k), ring) {}
  __device__ void begin(uint32_t rows) {
    Ring::begin(rows, size_t{this->cut_.k} * Stage::kXColumnBytes, threadIdx.x % kXThreads * 16);
  }

 private:
  using Ring::kTileThreads, Ring::kXThreads;

  template <uint32_t kThreads, uint32_t kColumn>
  __device__ void copy(uint8_t* to, const uint8_t* from) const {
    const uint32_t first = threadIdx.x % kThreads * 16, bytes = min(Shape::kStep, this->end_ - this->at_) * kColumn;
#pragma unroll
    for (uint32_t o = 0; o < Shape::kStep * kColumn; o += kThreads * 16)
      if (o + first < bytes) copy_async16(to + o + first, from + o);
  }
  __device__ void copy_weights(uint32_t stage) {
    if (this->weights_ == nullptr) return;
    copy<kTileThreads, Stage::kColumnBytes>(
        this->ring_ + stage * Stage::kBytes + threadIdx.x / kTileThreads * Stage::kTileBytes,
        this->weights_ + size_t{this->at_} * Stage::kColumnBytes);
  }
  __device__ void copy_x(uint32_t stage) {
    if (!this->live_) return;
    copy<kXThreads, Stage::kXColumnBytes>(
        this->ring_ + stage * Stage::kBytes + Stage::kX + threadIdx.x / kXThreads * Stage::kGroupBytes,
        this->x_ + size_t{this->at_} * Stage::kXColumnBytes);
  }
};

// Sums of a thread. Slot s: rows s % 2 * 4 and the three after it, column s / 2.
template <typename Shape>
struct WideFloatSums {
  float v[Shape::kRows][Shape::kColumns];
  __device__ void clear() {
#pragma unroll
    for (uint32_t s = 0; s < Shape::kSlots; ++s) set(s, {0.0f, 0.0f, 0.0f, 0.0f});
  }
  __device__ float4 get(uint32_t s) const {
    const uint32_t r = s % 2 * 4, c = s / 2;
    return {v[r][c], v[r + 1][c], v[r + 2][c], v[r + 3][c]};
  }
  __device__ void set(uint32_t s, float4 to) {
    const uint32_t r = s % 2 * 4, c = s / 2;
    v[r][c] = to.x, v[r + 1][c] = to.y, v[r + 2][c] = to.z, v[r + 3][c] = to.w;
  }
};

// Where a thread is: its eight rows of the group's tiles, its groups of x (the first; the others follow eight apart).
template <typename Shape>
struct WideFloatPlace {
  uint32_t tile, half, group;
  __device__ WideFloatPlace() {
    const uint32_t warp = threadIdx.x / kWarp, m = threadIdx.x % kWarp / 8;
    tile = warp % Shape::kWarpsM * 2 + m / 2;
    half = m % 2;
    group = warp / Shape::kWarpsM * Shape::kColumns + threadIdx.x % 8;
  }
};

template <Format kFormat>
struct alignas(16) EightWeights {
  typename CudaWeights<kFormat>::Element e[8];
};

// w: the thread's rows, x: its first group.
template <Format kFormat, typename Shape>
__device__ __forceinline__ void add_step(const uint8_t* w, const uint8_t* x, uint32_t i, WideFloatSums<Shape>& sums) {
  using Stage = WideFloatStage<kFormat, Shape>;
  const EightWeights<kFormat> eight = *reinterpret_cast<const EightWeights<kFormat>*>(w + i * Stage::kColumnBytes);
  float v[Shape::kColumns], weight[8];
#pragma unroll
  for (uint32_t q = 0; q < Shape::kColumns; q += 4) {
    const float4 four =
        *reinterpret_cast<const float4*>(x + q / 8 * 8 * Stage::kGroupBytes + i * Stage::kXColumnBytes + q % 8 * 4);
    v[q] = four.x, v[q + 1] = four.y, v[q + 2] = four.z, v[q + 3] = four.w;
  }
#pragma unroll
  for (uint32_t r = 0; r < 8; ++r) weight[r] = CudaWeights<kFormat>::value(eight.e[r]);
#pragma unroll
  for (uint32_t r = 0; r < 8; ++r)
#pragma unroll
    for (uint32_t c = 0; c < Shape::kColumns; ++c) sums.v[r][c] = __fmaf_rn(weight[r], v[c], sums.v[r][c]);
}

template <Format kFormat, typename Shape>
__device__ __forceinline__ void sum_float_part(WideFloatReader<kFormat, Shape>& reader, const WideCut& cut,
                                               const WidePart& part, bool live, void* shared,
                                               WideFloatSums<Shape>& sums) {
  using Stage = WideFloatStage<kFormat, Shape>;
  const WideFloatPlace<Shape> place;
  const uint32_t w_at = place.tile * Stage::kTileBytes + place.half * (Stage::kColumnBytes / 2);
  const uint32_t x_at = Stage::kX + place.group * Stage::kGroupBytes;
  typename Shape::Waiting waiting(shared);
#pragma unroll 1
  for (uint32_t i = 0; i < part.count; ++i) {
    sums.clear();
    const uint32_t end = min(segment_start(part.first + i + 1, cut.segments, cut.chunks) * kChunk, cut.k);
    for (uint32_t k = segment_start(part.first + i, cut.segments, cut.chunks) * kChunk; k < end; k += Shape::kStep) {
      const uint8_t* stage = reader.next();
      if (!live) continue;
      const uint8_t *w = stage + w_at, *x = stage + x_at;
      if (end - k >= Shape::kStep) {
#pragma unroll 1
        for (uint32_t s = 0; s < Shape::kStep; s += Shape::kUnroll)
#pragma unroll
          for (uint32_t u = 0; u < Shape::kUnroll; ++u) add_step<kFormat, Shape>(w, x, s + u, sums);
      } else {
#pragma unroll 1
        for (uint32_t s = 0; s < end - k; ++s) add_step<kFormat, Shape>(w, x, s, sums);
      }
    }
    if (live) waiting.join(sums, i, part.count);
  }
}

// Four rows of a tile of the launch, from `row` of the tile on.
__device__ __forceinline__ void store_rows(const CudaProduct& p, uint32_t tile, uint32_t row, uint32_t column,
                                           float4 v) {
  const TilePlace place = tile_place(p, tile);
  const CudaMatrix& matrix = p.gated ? p.matrix[0] : *place.matrix;
  row += place.tile * kTileRows;
  float* out = matrix.out + size_t{column} * matrix.width + row;
  if (row + 4 <= place.matrix->rows && (reinterpret_cast<uintptr_t>(out) & 15u) == 0) {
    float4* four = reinterpret_cast<float4*>(out);
    const float4 old = p.accumulate ? *four : float4{};
    *four = {output_of(p, v.x, old.x), output_of(p, v.y, old.y), output_of(p, v.z, old.z), output_of(p, v.w, old.w)};
    return;
  }
  const float values[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i)
    if (row + i < place.matrix->rows) out[i] = output_of(p, values[i], p.accumulate ? out[i] : 0.0f);
}

template <typename Shape>
__device__ __forceinline__ void store_float_group(const CudaProduct& p, const WideCut& cut, uint32_t group,
                                                  uint32_t rows, const typename Shape::Joined& joined) {
  const WideFloatPlace<Shape> place;
  const uint32_t tile = group * Shape::kTiles + place.tile;
  for (uint32_t s = joined.begin(); s < joined.end(); ++s) {
    const uint32_t column = (place.group + s / 16 * 8) * kCudaGroup + s / 2 % 8;
    float4 v = joined.get(s);
    if (p.gated) {
      // The up projection of the same rows is sixteen lanes away.
      const float4 up = {__shfl_xor_sync(kAll, v.x, 16), __shfl_xor_sync(kAll, v.y, 16), __shfl_xor_sync(kAll, v.z, 16),
                         __shfl_xor_sync(kAll, v.w, 16)};
      if ((place.tile & 1u) != 0) continue;
      v = {gated(v.x, up.x), gated(v.y, up.y), gated(v.z, up.z), gated(v.w, up.w)};
    }
    if (tile < cut.tiles && column < rows) store_rows(p, tile, place.half * 8 + s % 2 * 4, column, v);
  }
}

template <Format kFormat, typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    wide_float_product(const CudaStep* step, const __grid_constant__ CudaProduct p,
                       const __grid_constant__ WideCut cut) {
#if __CUDA_ARCH__ >= 900
  using Stage = WideFloatStage<kFormat, Shape>;
  uint8_t* const shared = dynamic_shared();
  release_next();
  const WidePart part(cut);
  WideFloatReader<kFormat, Shape> reader(p, cut, part, shared);
  reader.request_weights();
  wait_for_previous();
  const uint32_t rows = live_rows(step, p.head);
  if (rows == 0) return;
  reader.begin(rows);
  const bool live = threadIdx.x / kWarp / Shape::kWarpsM * Shape::kColumns * kCudaGroup < rows;
  uint8_t* behind = shared + Stage::kStages * Stage::kBytes;
  typename Shape::Joined joined(cut, part, behind);
  for (uint32_t group = part.cluster; group < cut.groups; group += part.clusters) {
    WideFloatSums<Shape> sums;
    joined.open();
    sum_float_part<kFormat, Shape>(reader, cut, part, live, behind, sums);
#pragma unroll
    for (uint32_t s = 0; s < Shape::kSlots; ++s) joined.put(s, sums.get(s));
    joined.close();
    store_float_group<Shape>(p, cut, group, rows, joined);
    joined.done();
  }
  joined.leave();
#endif
}

// A launch of a kernel, cut and ready.
template <Format kFormat, typename Shape>
class WideFloatLaunch {
 public:
  WideFloatLaunch(const CudaLaunch& on, const CudaProduct& p) : on_(on), p_(p) {
    static const ClustersAtOnce at_once = clusters_at_once(kKernel, Shape::kThreads, kShared, on.processors);
    cut_ = wide_cut(p, false, Shape::kTiles, Shape::kSlots, at_once);
    blocks_ = wide_blocks(cut_, at_once);
  }
  uint32_t blocks() const { return blocks_; }
  void run(const CudaStep* step) const {
    launch_clusters(on_, kKernel, cut_.parts, dim3(blocks_), Shape::kThreads, kShared, step, p_, cut_);
  }

 private:
  using Stage = WideFloatStage<kFormat, Shape>;
  static constexpr size_t kShared = Stage::kStages * Stage::kBytes + Shape::Waiting::kBytes;
  static constexpr auto kKernel = wide_float_product<kFormat, Shape>;
  const CudaLaunch& on_;
  const CudaProduct& p_;
  WideCut cut_;
  uint32_t blocks_;
};

}  // namespace stet::cuda
