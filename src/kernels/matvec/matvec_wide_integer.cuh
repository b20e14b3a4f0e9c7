// Integer-block products of many rows. A warp holds kM weight tiles times kN groups of eight rows of x: the weights of
// a block become fragments once for all rows, and what is left is the arithmetic of the contract, three float
// operations an output and block (the tensor cores give the sums; docs/performance.md has the floor that this makes).
//
// All weights and activations pass through a ring of stages in shared memory, a chunk of K each, that all threads fill
// with asynchronous copies. The ring runs on from one group of tiles to the next.
#pragma once

#include "kernels/matvec/matvec_wide_integer_ring.cuh"

namespace stet::cuda {

// Sums of a lane: of tile i and group j rows 2g and 2g + 1, columns 2t and 2t + 1, as (2g, 2t), (2g, 2t + 1), (2g + 1,
// 2t), ...
struct WideSums {
  float4 v[WideShape::kM][WideShape::kN];
  __device__ void clear() {
#pragma unroll
    for (uint32_t s = 0; s < WideShape::kSlots; ++s) set(s, {0.0f, 0.0f, 0.0f, 0.0f});
  }
  __device__ float4 get(uint32_t s) const { return v[s % WideShape::kM][s / WideShape::kM]; }
  __device__ void set(uint32_t s, float4 to) { v[s % WideShape::kM][s / WideShape::kM] = to; }
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
template <Format kFormat>
struct WideWeights {
  using W = CudaWeights<kFormat>;
  static constexpr uint32_t kOfMinimum = W::kMinimum ? WideShape::kM : 1, kOfHalves = W::kHalves ? WideShape::kM : 1;
  uint32_t a[WideShape::kM][4];
  float2 d[WideShape::kM], minimum[kOfMinimum], sub[kOfHalves][2];

  // w: the warp's first tile of a stage; block b of `blocks`.
  __device__ __forceinline__ void load(const uint8_t* w, uint32_t b, uint32_t blocks) {
    using Stage = WideStage<kFormat>;
    const uint32_t lane = threadIdx.x % kWarp, g = lane / 4, at = Stage::turned(fragment_offset(lane));
#pragma unroll
    for (uint32_t i = 0; i < WideShape::kM; ++i) {
      const uint8_t* codes = w + i * Stage::kTileBytes + b * W::kCodes;
      const uint8_t* scales = w + i * Stage::kTileBytes + blocks * W::kCodes + b * W::kScales;
      W::fragment(codes, at, lane, a[i]);
      d[i] = W::scale(scales, g);
      if constexpr (W::kMinimum) minimum[i] = W::minimum(scales, g);
      if constexpr (W::kHalves) W::sub_scales(scales, g, sub[i]);
    }
  }
};

// A block of a group of x as a lane holds it. over: what stands above the sums of the low and the high half; of all
// where not kHalves.
template <Format kFormat>
struct WideX {
  using W = CudaWeights<kFormat>;
  uint32_t b[2];
  float d[2], over[2][2], scaled[2];
  __device__ __forceinline__ void load(const uint8_t* x) {
    const uint32_t lane = threadIdx.x % kWarp, t = lane % 4;
    const uint2 words = load_words(x + lane * 8);
    const int4 s = *reinterpret_cast<const int4*>(x + 256 + t * 16);
    d[0] = __int_as_float(s.x), d[1] = __int_as_float(s.y);
    b[0] = words.x, b[1] = words.y;
    if constexpr (W::kHalves) {
      const int2 high = *reinterpret_cast<const int2*>(x + 352 + t * 8);
      over[0][0] = above<W::kOffset>(s.z - high.x), over[0][1] = above<W::kOffset>(s.w - high.y);
      over[1][0] = above<W::kOffset>(high.x), over[1][1] = above<W::kOffset>(high.y);
    } else {
      over[0][0] = above<W::kOffset>(s.z), over[0][1] = above<W::kOffset>(s.w);
    }
    if constexpr (W::kMinimum) {
      const float2 v = *reinterpret_cast<const float2*>(x + 320 + t * 8);
      scaled[0] = v.x, scaled[1] = v.y;
    }
  }
};

// Products of kM tiles and a group: of a half of the block each where the format has two.
template <Format kFormat>
struct WideProducts {
  using W = CudaWeights<kFormat>;
  static constexpr uint32_t kParts = W::kHalves ? 2 : 1;
  int32_t c[WideShape::kM][kParts][4];
  __device__ __forceinline__ void multiply(const WideWeights<kFormat>& w, const WideX<kFormat>& x) {
    constexpr int32_t kStart[4] = {kIntegerInFloat, kIntegerInFloat, kIntegerInFloat, kIntegerInFloat};
#pragma unroll
    for (uint32_t i = 0; i < WideShape::kM; ++i) {
      if constexpr (W::kHalves) {
        mma16(c[i][0], w.a[i][0], w.a[i][1], x.b[0], kStart);
        mma16(c[i][1], w.a[i][2], w.a[i][3], x.b[1], kStart);
      } else {
        mma32(c[i][0], w.a[i], x.b[0], x.b[1], kStart);
      }
    }
  }
  __device__ __forceinline__ void add(const WideWeights<kFormat>& w, const WideX<kFormat>& x, uint32_t j,
                                      WideSums& sums) const {
#pragma unroll
    for (uint32_t i = 0; i < WideShape::kM; ++i) {
      float4 isum = below(c[i][0], x.over[0][0], x.over[0][1]);
      if constexpr (W::kHalves) {
        // Integers below 2^24 all the way: exact in floats.
        const float2 s0 = w.sub[i][0], s1 = w.sub[i][1];
        const float4 scaled = {__fmul_rn(s0.x, isum.x), __fmul_rn(s0.x, isum.y), __fmul_rn(s0.y, isum.z),
                               __fmul_rn(s0.y, isum.w)};
        isum = fma4({s1.x, s1.x, s1.y, s1.y}, below(c[i][1], x.over[1][0], x.over[1][1]), scaled);
      }
      sums.v[i][j] = fma4(outer(w.d[i], x.d[0], x.d[1]), isum, sums.v[i][j]);
      if constexpr (W::kMinimum) {
        const float2 m = w.minimum[i];
        sums.v[i][j] = fma4({m.x, m.x, m.y, m.y}, {x.scaled[0], x.scaled[1], x.scaled[0], x.scaled[1]}, sums.v[i][j]);
      }
    }
  }
};

// Block b of `blocks`. The products of a group are under way while those of the one before are added.
template <Format kFormat>
__device__ __forceinline__ void add_block(const uint8_t* w, const uint8_t* x, uint32_t b, uint32_t blocks,
                                          WideSums& sums) {
  using Stage = WideStage<kFormat>;
  WideWeights<kFormat> weights;
  WideX<kFormat> group[2];
  WideProducts<kFormat> products[2];
  x += b * Stage::kRecord;
  weights.load(w, b, blocks);
  group[0].load(x);
  products[0].multiply(weights, group[0]);
#pragma unroll
  for (uint32_t j = 0; j < WideShape::kN; ++j) {
    const uint32_t n = j + 1;
    if (n < WideShape::kN) {
      group[n % 2].load(x + n * Stage::kGroupBytes);
      products[n % 2].multiply(weights, group[n % 2]);
    }
    products[j % 2].add(weights, group[j % 2], j, sums);
  }
}

template <Format kFormat>
__device__ __forceinline__ void add_stage(const uint8_t* stage, uint32_t blocks, WideSums& sums) {
  using Stage = WideStage<kFormat>;
  const uint32_t warp = threadIdx.x / kWarp;
  const uint8_t* w = stage + warp % WideShape::kWarpsM * WideShape::kM * Stage::kTileBytes;
  const uint8_t* x = stage + Stage::kX + warp / WideShape::kWarpsM * WideShape::kN * Stage::kGroupBytes;
  // Not unrolled: some formats would spill.
  if (blocks == kChunkBlocks) {
#pragma unroll 1
    for (uint32_t b = 0; b < kChunkBlocks; ++b) add_block<kFormat>(w, x, b, kChunkBlocks, sums);
  } else {
#pragma unroll 1
    for (uint32_t b = 0; b < blocks; ++b) add_block<kFormat>(w, x, b, blocks, sums);
  }
}

// The segments of a part as the subtree that they are.
template <Format kFormat>
__device__ __forceinline__ void sum_part(WideReader<kFormat>& reader, const WideCut& cut, const WidePart& part,
                                         bool live, void* shared, WideSums& sums) {
  WideShape::Waiting waiting(shared);
#pragma unroll 1
  for (uint32_t i = 0; i < part.count; ++i) {
    sums.clear();
    const uint32_t end = segment_start(part.first + i + 1, cut.segments, cut.chunks);
#pragma unroll 1
    for (uint32_t c = segment_start(part.first + i, cut.segments, cut.chunks); c < end; ++c) {
      const uint8_t* stage = reader.next();
      if (live) add_stage<kFormat>(stage, min(kChunkBlocks, cut.k / kBlock - c * kChunkBlocks), sums);
    }
    if (live) waiting.join(sums, i, part.count);
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
    *out = output_of(p, values[i], p.accumulate ? *out : 0.0f);
  }
}

__device__ __forceinline__ void store_group(const CudaProduct& p, const WideCut& cut, uint32_t group, uint32_t rows,
                                            const WideShape::Joined& joined) {
  const uint32_t warp = threadIdx.x / kWarp, step = p.gated ? 2 : 1;
  for (uint32_t s = joined.begin(); s < joined.end(); s += step) {
    const uint32_t tile = group * WideShape::kTiles + warp % WideShape::kWarpsM * WideShape::kM + s % WideShape::kM;
    const uint32_t column = (warp / WideShape::kWarpsM * WideShape::kN + s / WideShape::kM) * kCudaGroup;
    if (tile >= cut.tiles || column >= rows) continue;
    float4 v = joined.get(s);
    if (p.gated) {
      const float4 up = joined.get(s + 1);
      v = {gated(v.x, up.x), gated(v.y, up.y), gated(v.z, up.z), gated(v.w, up.w)};
    }
    store_fragment(p, tile, column, rows, v);
  }
}

template <Format kFormat>
__global__ void __launch_bounds__(WideShape::kThreads, 1)
    wide_integer_product(const CudaStep* step, const __grid_constant__ CudaProduct p,
                         const __grid_constant__ WideCut cut) {
#if __CUDA_ARCH__ >= 900
  using Stage = WideStage<kFormat>;
  uint8_t* const shared = dynamic_shared();
  release_next();
  const WidePart part(cut);
  WideReader<kFormat> reader(p, cut, part, shared);
  reader.request_weights();
  wait_for_previous();
  const uint32_t rows = live_rows(step, p.head);
  if (rows == 0) return;
  reader.begin(rows);
  const bool live = threadIdx.x / kWarp / WideShape::kWarpsM * WideShape::kN * kCudaGroup < rows;
  uint8_t* behind = shared + Stage::kStages * Stage::kBytes;
  WideShape::Joined joined(cut, part, behind);
  for (uint32_t group = part.cluster; group < cut.groups; group += part.clusters) {
    WideSums sums;
    joined.open();
    sum_part<kFormat>(reader, cut, part, live, behind, sums);
#pragma unroll
    for (uint32_t s = 0; s < WideShape::kSlots; ++s) joined.put(s, sums.get(s));
    joined.close();
    store_group(p, cut, group, rows, joined);
    joined.done();
  }
  joined.leave();
#endif
}

template <Format kFormat>
void launch_wide_integer(const CudaLaunch& on, const CudaStep* step, const CudaProduct& p) {
  using Stage = WideStage<kFormat>;
  constexpr size_t kShared = Stage::kStages * Stage::kBytes + WideShape::Waiting::kBytes;
  const auto kernel = wide_integer_product<kFormat>;
  static const ClustersAtOnce at_once = clusters_at_once(kernel, WideShape::kThreads, kShared, on.processors);
  const WideCut cut = wide_cut(p, true, WideShape::kTiles, WideShape::kSlots / 2, at_once);
  launch_clusters(on, kernel, cut.parts, dim3(wide_blocks(cut, at_once)), WideShape::kThreads, kShared, step, p, cut);
}

}  // namespace stet::cuda
