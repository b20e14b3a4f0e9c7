// Integer-block products of many rows. A warp holds kM weight tiles times kN groups of eight rows of x: the weights of
// a block become fragments once for all rows, and what is left is the arithmetic of the contract, three float
// operations an output and block (the tensor cores give the sums; docs/performance.md has the floor that this makes).
//
// All weights and activations pass through a ring of stages in shared memory, a chunk of K each, that all threads fill
// with asynchronous copies. The ring runs on from one group of tiles to the next.
#pragma once

#include "formats/each_cuda.cuh"
#include "formats/pack.h"
#include "kernels/cuda/activations.h"
#include "kernels/matvec/matvec_wide.cuh"

namespace stet::cuda {

template <uint32_t kWarpsM_, uint32_t kWarpsN_, uint32_t kM_, uint32_t kN_, uint32_t kStages_>
struct WideShape {
  static constexpr uint32_t kWarpsM = kWarpsM_, kWarpsN = kWarpsN_, kM = kM_, kN = kN_, kStages = kStages_;
  static constexpr uint32_t kTiles = kWarpsM * kM;   // of weights
  static constexpr uint32_t kGroups = kWarpsN * kN;  // of x
  static constexpr uint32_t kThreads = kWarpsM * kWarpsN * kWarp;
  static constexpr uint32_t kSlots = kM * kN;  // two at least for each block of a cluster: gate and up
  static_assert(kM % 2 == 0, "gate and up are neighbouring tiles of a warp");
};

template <Format kFormat, typename Shape>
struct WideStage {
  using W = CudaWeights<kFormat>;
  static constexpr uint32_t kBlockBytes = W::kCodes + W::kScales;
  static constexpr uint32_t kTileBytes = kChunkBlocks * kBlockBytes;
  static constexpr uint32_t kRecord =
      W::kMinimum || W::kHalves ? kCudaRecord : 320;  // what the format needs of a record
  static constexpr uint32_t kGroupBytes = kChunkBlocks * kRecord;
  static constexpr uint32_t kX = Shape::kTiles * kTileBytes;  // where x begins
  static constexpr uint32_t kBytes = kX + Shape::kGroups * kGroupBytes;
  // Codes of 256 bytes: the second half of each run is turned by 32 bytes, so that the lanes of a half-warp meet
  // different banks.
  static constexpr bool kTurned = W::kCodes % 256 == 0;
  __device__ static uint32_t turned(uint32_t offset) { return kTurned ? offset ^ (offset >> 2 & 32u) : offset; }
};

// Fills the ring. The chunks begin .. end - 1 of the groups of a cluster, one group after the other.
template <Format kFormat, typename Shape>
class WideReader {
 public:
  using Stage = WideStage<kFormat, Shape>;
  __device__ WideReader(const CudaProduct& p, const WideCut& cut, const WidePart& part, uint8_t* ring)
      : p_(p), cut_(cut), part_(part), ring_(ring), group_(part.cluster), chunk_(part.begin) {
    more_ = part.begin < part.end && group_ < cut.groups;
    if (more_) open();
#pragma unroll
    for (uint32_t j = 0; j < kXPieces; ++j) {
      const uint32_t piece = threadIdx.x % kXThreads + j * kXThreads;
      x_offset_[j] = piece / (Stage::kRecord / 16) * kCudaRecord + piece % (Stage::kRecord / 16) * 16;
    }
  }
  // The weights of the first stages, which depend on nothing; then, when x is there, x.
  __device__ void request_weights() {
    const uint32_t group = group_, chunk = chunk_;
    const bool more = more_;
    for (uint32_t i = 0; i + 1 < Shape::kStages && more_; ++i) {
      copy_weights(i);
      advance();
    }
    group_ = group, chunk_ = chunk, more_ = more;
    if (more_) open();
  }
  __device__ void begin(uint32_t rows) {
    const uint32_t group = threadIdx.x / kXThreads;
    live_ = group * kCudaGroup < rows;
    x_ = p_.x + size_t{group} * (cut_.k / kBlock) * kCudaRecord;
    for (uint32_t i = 0; i + 1 < Shape::kStages; ++i) {
      if (more_) {
        copy_x(i);
        advance();
      }
      copy_commit();
    }
  }
  // The next stage, when it is there for all threads. The place that became free is filled anew.
  __device__ const uint8_t* next() {
    copy_wait<Shape::kStages - 2>();
    __syncthreads();
    const uint32_t free = stage_ == 0 ? Shape::kStages - 1 : stage_ - 1;
    if (more_) {
      copy_weights(free);
      copy_x(free);
      advance();
    }
    copy_commit();
    const uint8_t* stage = ring_ + stage_ * Stage::kBytes;
    stage_ = stage_ + 1 == Shape::kStages ? 0 : stage_ + 1;
    return stage;
  }

 private:
  static constexpr uint32_t kTileThreads = Shape::kThreads / Shape::kTiles,
                            kXThreads = Shape::kThreads / Shape::kGroups;
  static constexpr uint32_t kXPieces = (kChunkBlocks * Stage::kRecord / 16 + kXThreads - 1) / kXThreads;
  static_assert(kTileThreads % 16 == 0 && kXThreads >= 1);

  __device__ uint32_t blocks() const { return min(kChunkBlocks, cut_.k / kBlock - chunk_ * kChunkBlocks); }
  __device__ void open() {
    const uint32_t t = group_ * Shape::kTiles + threadIdx.x / kTileThreads;
    weights_ = nullptr;
    if (t >= cut_.tiles) return;
    const TilePlace place = tile_place(p_, t);
    weights_ = place.matrix->data + place.tile * p_.tile_bytes + threadIdx.x % kTileThreads * 16;
  }
  __device__ void copy_weights(uint32_t stage) {
    if (weights_ == nullptr) return;
    uint8_t* to = ring_ + stage * Stage::kBytes + threadIdx.x / kTileThreads * Stage::kTileBytes;
    const uint8_t* from = weights_ + size_t{chunk_} * Stage::kTileBytes;
    const uint32_t first = threadIdx.x % kTileThreads * 16, turned = Stage::turned(first);
    const uint32_t codes = blocks() * Stage::W::kCodes, bytes = blocks() * Stage::kBlockBytes;
#pragma unroll
    for (uint32_t o = 0; o < Stage::kTileBytes; o += kTileThreads * 16)
      if (o + first < bytes) copy_async16(to + o + (o + first < codes ? turned : first), from + o);
  }
  __device__ void copy_x(uint32_t stage) {
    if (!live_) return;
    uint8_t* to = ring_ + stage * Stage::kBytes + Stage::kX + threadIdx.x / kXThreads * Stage::kGroupBytes +
                  threadIdx.x % kXThreads * 16;
    const uint8_t* from = x_ + size_t{chunk_} * (kChunkBlocks * kCudaRecord);
    const uint32_t pieces = blocks() * (Stage::kRecord / 16);
#pragma unroll
    for (uint32_t j = 0; j < kXPieces; ++j)
      if (threadIdx.x % kXThreads + j * kXThreads < pieces) copy_async16(to + j * kXThreads * 16, from + x_offset_[j]);
  }
  __device__ void advance() {
    if (++chunk_ < part_.end) return;
    chunk_ = part_.begin;
    group_ += part_.clusters;
    more_ = group_ < cut_.groups;
    if (more_) open();
  }

  const CudaProduct& p_;
  const WideCut& cut_;
  const WidePart& part_;
  uint8_t* ring_;
  uint32_t group_, chunk_, stage_ = 0;
  bool more_, live_ = false;
  const uint8_t* weights_ = nullptr;  // of this thread's tile
  const uint8_t* x_ = nullptr;        // of this thread's group
  uint32_t x_offset_[kXPieces];
};

// Sums of a lane: of tile i and group j rows 2g and 2g + 1, columns 2t and 2t + 1, as (2g, 2t), (2g, 2t + 1), (2g + 1,
// 2t), ...
template <typename Shape>
struct WideSums {
  float4 v[Shape::kM][Shape::kN];
  __device__ void clear() {
#pragma unroll
    for (uint32_t s = 0; s < Shape::kSlots; ++s) at(s) = {0.0f, 0.0f, 0.0f, 0.0f};
  }
  __device__ float4& at(uint32_t s) { return v[s % Shape::kM][s / Shape::kM]; }
  __device__ void add_left(const float4* left) {
#pragma unroll
    for (uint32_t s = 0; s < Shape::kSlots; ++s) at(s) = add4(left[s], at(s));
  }
  __device__ void leave(float4* to) {
#pragma unroll
    for (uint32_t s = 0; s < Shape::kSlots; ++s) to[s] = at(s);
  }
};

// A float that stands `sub` above an integer, as the integer: exact.
__device__ __forceinline__ float4 below(const int32_t c[4], float sub0, float sub1) {
  return {__fsub_rn(__int_as_float(c[0]), sub0), __fsub_rn(__int_as_float(c[1]), sub1),
          __fsub_rn(__int_as_float(c[2]), sub0), __fsub_rn(__int_as_float(c[3]), sub1)};
}
// What is above the sums of codes without their offset: kOffset times the sum of x's codes.
template <int kOffset>
__device__ __forceinline__ float above(int32_t sum) {
  return __int_as_float(kIntegerInFloat + kOffset * sum);
}
// a.x of row 2g, a.y of row 2g + 1; x0 and x1 of the columns.
__device__ __forceinline__ float4 outer(float2 a, float x0, float x1) {
  return {__fmul_rn(a.x, x0), __fmul_rn(a.x, x1), __fmul_rn(a.y, x0), __fmul_rn(a.y, x1)};
}
__device__ __forceinline__ float4 fma4(float4 a, float4 b, float4 c) {
  return {__fmaf_rn(a.x, b.x, c.x), __fmaf_rn(a.y, b.y, c.y), __fmaf_rn(a.z, b.z, c.z), __fmaf_rn(a.w, b.w, c.w)};
}

// A block of weights as a lane holds it, for kM tiles.
template <Format kFormat, typename Shape>
struct WideWeights {
  using W = CudaWeights<kFormat>;
  static constexpr uint32_t kOfMinimum = W::kMinimum ? Shape::kM : 1, kOfHalves = W::kHalves ? Shape::kM : 1;
  uint32_t a[Shape::kM][4];
  float2 d[Shape::kM], minimum[kOfMinimum], sub[kOfHalves][2];

  // w: the warp's first tile of a stage; block b of `blocks`.
  __device__ void load(const uint8_t* w, uint32_t b, uint32_t blocks) {
    using Stage = WideStage<kFormat, Shape>;
    const uint32_t lane = threadIdx.x % kWarp, g = lane / 4, at = Stage::turned(fragment_offset(lane));
#pragma unroll
    for (uint32_t i = 0; i < Shape::kM; ++i) {
      const uint8_t *codes = w + i * Stage::kTileBytes + b * W::kCodes,
                    *scales = w + i * Stage::kTileBytes + blocks * W::kCodes + b * W::kScales;
      W::fragment(codes, at, lane, a[i]);
      d[i] = W::scale(scales, g);
      if constexpr (W::kMinimum) minimum[i] = W::minimum(scales, g);
      if constexpr (W::kHalves) W::sub_scales(scales, g, sub[i]);
    }
  }
};

// x: the record of a group.
template <Format kFormat, typename Shape>
__device__ __forceinline__ void add_group(const WideWeights<kFormat, Shape>& w, const uint8_t* x, uint32_t j,
                                          WideSums<Shape>& sums) {
  using W = CudaWeights<kFormat>;
  constexpr int32_t kStart[4] = {kIntegerInFloat, kIntegerInFloat, kIntegerInFloat, kIntegerInFloat};
  const uint32_t lane = threadIdx.x % kWarp, t = lane % 4;
  const uint2 b = load_words(x + lane * 8);
  const int4 s = *reinterpret_cast<const int4*>(x + 256 + t * 16);
  const float d0 = __int_as_float(s.x), d1 = __int_as_float(s.y);
  int32_t c[4];
  if constexpr (W::kHalves) {
    const int2 high = *reinterpret_cast<const int2*>(x + 352 + t * 8);
    const float h0 = above<W::kOffset>(high.x), h1 = above<W::kOffset>(high.y);
    const float l0 = above<W::kOffset>(s.z - high.x), l1 = above<W::kOffset>(s.w - high.y);
#pragma unroll
    for (uint32_t i = 0; i < Shape::kM; ++i) {
      // Integers below 2^24 all the way: exact in floats.
      mma16(c, w.a[i][0], w.a[i][1], b.x, kStart);
      const float4 low = below(c, l0, l1);
      mma16(c, w.a[i][2], w.a[i][3], b.y, kStart);
      const float4 high_sum = below(c, h0, h1);
      const float2 s0 = w.sub[i][0], s1 = w.sub[i][1];
      const float4 scaled = {__fmul_rn(s0.x, low.x), __fmul_rn(s0.x, low.y), __fmul_rn(s0.y, low.z),
                             __fmul_rn(s0.y, low.w)};
      const float4 isum = fma4({s1.x, s1.x, s1.y, s1.y}, high_sum, scaled);
      sums.v[i][j] = fma4(outer(w.d[i], d0, d1), isum, sums.v[i][j]);
    }
  } else {
    const float o0 = above<W::kOffset>(s.z), o1 = above<W::kOffset>(s.w);
#pragma unroll
    for (uint32_t i = 0; i < Shape::kM; ++i) {
      mma32(c, w.a[i], b.x, b.y, kStart);
      sums.v[i][j] = fma4(outer(w.d[i], d0, d1), below(c, o0, o1), sums.v[i][j]);
    }
  }
  if constexpr (W::kMinimum) {
    const float2 scaled = *reinterpret_cast<const float2*>(x + 320 + t * 8);
#pragma unroll
    for (uint32_t i = 0; i < Shape::kM; ++i) {
      const float2 m = w.minimum[i];
      sums.v[i][j] = fma4({m.x, m.x, m.y, m.y}, {scaled.x, scaled.y, scaled.x, scaled.y}, sums.v[i][j]);
    }
  }
}

template <Format kFormat, typename Shape>
__device__ __forceinline__ void add_stage(const uint8_t* stage, uint32_t blocks, WideSums<Shape>& sums) {
  using Stage = WideStage<kFormat, Shape>;
  const uint32_t warp = threadIdx.x / kWarp;
  const uint8_t* w = stage + warp % Shape::kWarpsM * Shape::kM * Stage::kTileBytes;
  const uint8_t* x = stage + Stage::kX + warp / Shape::kWarpsM * Shape::kN * Stage::kGroupBytes;
  const auto block = [&](uint32_t b, uint32_t of) {
    WideWeights<kFormat, Shape> weights;
    weights.load(w, b, of);
#pragma unroll
    for (uint32_t j = 0; j < Shape::kN; ++j)
      add_group<kFormat, Shape>(weights, x + j * Stage::kGroupBytes + b * Stage::kRecord, j, sums);
  };
  if (blocks == kChunkBlocks) {
#pragma unroll
    for (uint32_t b = 0; b < kChunkBlocks; ++b) block(b, kChunkBlocks);
  } else {
#pragma unroll 1
    for (uint32_t b = 0; b < blocks; ++b) block(b, blocks);
  }
}

// The segments of a part as the subtree that they are: the left neighbour in registers, the levels above it in memory.
template <Format kFormat, typename Shape>
__device__ __forceinline__ void sum_part(WideReader<kFormat, Shape>& reader, const WideCut& cut, const WidePart& part,
                                         bool live, WideSums<Shape>& sums) {
  float4 left[Shape::kSlots], level[3][Shape::kSlots];
  for (uint32_t i = 0; i < part.count; ++i) {
    sums.clear();
    const uint32_t end = segment_start(part.first + i + 1, cut.segments, cut.chunks);
    for (uint32_t c = segment_start(part.first + i, cut.segments, cut.chunks); c < end; ++c) {
      const uint8_t* stage = reader.next();
      if (live) add_stage<kFormat, Shape>(stage, min(kChunkBlocks, cut.k / kBlock - c * kChunkBlocks), sums);
    }
    if (i + 1 == part.count && i == 0) return;
    if ((i & 1u) == 0) {
      sums.leave(left);
      continue;
    }
    sums.add_left(left);
    uint32_t l = 0;
    for (; (i >> (l + 1) & 1u) != 0; ++l) sums.add_left(level[l]);
    if (i + 1 < part.count) sums.leave(level[l]);
  }
}

// Of a tile of the launch, its rows 2g and 2g + 1 at the columns that the warp's group of x begins with.
__device__ __forceinline__ void store_fragment(const CudaProduct& p, uint32_t tile, uint32_t column, uint32_t rows,
                                               float4 v) {
  const TilePlace place = tile_place(p, tile);
  const CudaMatrix& matrix = p.gated ? p.matrix[0] : *place.matrix;
  const uint32_t lane = threadIdx.x % kWarp, row = place.tile * kTileRows + lane / 4 * 2;
  column += lane % 4 * 2;
  const float values[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t r = row + i / 2, c = column + i % 2;
    if (r >= place.matrix->rows || c >= rows) continue;
    float* out = matrix.out + size_t{c} * matrix.width + r;
    *out = p.accumulate ? __fadd_rn(*out, values[i]) : values[i];
  }
}

template <typename Shape, typename Joined>
__device__ __forceinline__ void store_group(const CudaProduct& p, const WideCut& cut, uint32_t group, uint32_t rows,
                                            const Joined& joined) {
  const uint32_t warp = threadIdx.x / kWarp, step = p.gated ? 2 : 1;
  for (uint32_t s = joined.begin(); s < joined.end(); s += step) {
    const uint32_t tile = group * Shape::kTiles + warp % Shape::kWarpsM * Shape::kM + s % Shape::kM;
    const uint32_t column = (warp / Shape::kWarpsM * Shape::kN + s / Shape::kM) * kCudaGroup;
    if (tile >= cut.tiles || column >= rows) continue;
    float4 v = joined.get(s);
    if (p.gated) {
      const float4 up = joined.get(s + 1);
      v = {gated(v.x, up.x), gated(v.y, up.y), gated(v.z, up.z), gated(v.w, up.w)};
    }
    store_fragment(p, tile, column, rows, v);
  }
}

template <Format kFormat, typename Shape>
struct WideIntegerMemory {
  using Joined = Exchange<Shape::kSlots, Shape::kThreads>;
  static constexpr uint32_t kRing = Shape::kStages * WideStage<kFormat, Shape>::kBytes;
  static constexpr uint32_t kBytes = kRing + Joined::kBytes;
};

template <Format kFormat, typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    wide_integer_product(const CudaStep* step, const __grid_constant__ CudaProduct p,
                         const __grid_constant__ WideCut cut) {
#if __CUDA_ARCH__ >= 900
  using Memory = WideIntegerMemory<kFormat, Shape>;
  extern __shared__ __align__(128) uint8_t shared[];
  release_next();
  const WidePart part(cut);
  WideReader<kFormat, Shape> reader(p, cut, part, shared);
  reader.request_weights();
  wait_for_previous();
  const uint32_t rows = p.head ? step->head_rows : step->rows;
  if (rows == 0) return;
  reader.begin(rows);
  const bool live = threadIdx.x / kWarp / Shape::kWarpsM * Shape::kN * kCudaGroup < rows;
  typename Memory::Joined joined(cut, part, shared + Memory::kRing);
  for (uint32_t group = part.cluster; group < cut.groups; group += part.clusters) {
    WideSums<Shape> sums;
    sum_part<kFormat, Shape>(reader, cut, part, live, sums);
    joined.open();
#pragma unroll
    for (uint32_t s = 0; s < Shape::kSlots; ++s) joined.put(s, sums.at(s));
    joined.close();
    store_group<Shape>(p, cut, group, rows, joined);
    joined.done();
  }
  joined.leave();
#endif
}

// parts: blocks of a cluster; 0: by the shape.
template <Format kFormat, typename Shape>
void launch_wide_integer(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p, uint32_t parts = 0) {
  using Memory = WideIntegerMemory<kFormat, Shape>;
  const auto kernel = wide_integer_product<kFormat, Shape>;
  static const ClustersAtOnce at_once = clusters_at_once(kernel, Shape::kThreads, Memory::kBytes, on.processors);
  const WideCut cut = wide_cut(p, true, Shape::kTiles, Shape::kSlots / 2, at_once, parts);
  launch_clusters(on, kernel, cut.parts, dim3(wide_blocks(cut, at_once)), Shape::kThreads, Memory::kBytes, step, p,
                  cut);
}

}  // namespace stet::cuda
