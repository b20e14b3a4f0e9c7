// Dot products of many query heads and many keys on a device, in the order of docs/numerics.md 6.2: eight partial sums (d mod 8), fma in d
// order, and their tree.
//
// A tile of 20 keys and some heads lie in shared memory. A warp takes four or eight of the heads: lane 8 g + r makes partial sum r of its
// heads and of keys 5 g .. 5 g + 4, so that five elements of keys and four or eight of queries give 20 or 40 fma.
#pragma once

#include "kernels/common/state_rows_cuda.cuh"

namespace stet::cuda {

constexpr uint32_t kLaneKeys = 5;
constexpr uint32_t kTileKeys = kLaneKeys * kWarp / 8;
constexpr uint32_t kQuad = 4;  // heads whose elements lie together

// Floats from key to key: five keys on, the banks are those of eight elements on.
__host__ __device__ constexpr uint32_t key_stride(uint32_t dim) { return (dim + 31) / 32 * 32 + 8; }
__host__ __device__ constexpr size_t key_tile_bytes(uint32_t dim) { return size_t{kTileKeys} * key_stride(dim) * sizeof(float); }
__host__ __device__ constexpr size_t quad_bytes(uint32_t quads, uint32_t dim) { return size_t{quads} * dim * kQuad * sizeof(float); }

// Queries as to[quad][d] of four heads; those behind the last head are zeros. q: [head][dim], of `heads` heads.
template <uint32_t kThreads>
__device__ __forceinline__ void load_quads(const float* q, uint32_t heads, uint32_t quads, uint32_t dim, float4* to) {
#pragma unroll 4
  for (uint32_t i = threadIdx.x; i < quads * dim; i += kThreads) {
    const uint32_t head = i / dim * kQuad, d = i % dim;
    const auto element = [&](uint32_t h) { return head + h < heads ? __ldcg(q + size_t{head + h} * dim + d) : 0.0f; };
    to[i] = {element(0), element(1), element(2), element(3)};
  }
}

// Keys first .. first + 19 of `count`; those behind the last are zeros. row_of(i): where key i begins. own(i): whether it is f32, whatever
// kFormat is.
template <RowFormat kFormat, uint32_t kThreads, typename RowOf, typename Own>
__device__ __forceinline__ void load_keys(const StateRows& rows, uint32_t first, uint32_t count, const RowOf& row_of, const Own& own, float* to) {
  constexpr uint32_t kWarps = kThreads / kWarp, kEach = (kTileKeys + kWarps - 1) / kWarps;
  const uint32_t warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, stride = key_stride(rows.width);
  const uint8_t* row[kEach];
#pragma unroll
  for (uint32_t i = 0; i < kEach; ++i) row[i] = first + warp + i * kWarps < count ? row_of(first + warp + i * kWarps) : nullptr;
#pragma unroll 1
  for (uint32_t d = lane * 4; d < rows.width; d += kWarp * 4) {
    RowQuad<kFormat> quad[kEach] = {};
    float4 plain[kEach] = {};
#pragma unroll
    for (uint32_t i = 0; i < kEach; ++i) {
      if (row[i] == nullptr) continue;
      if (own(first + warp + i * kWarps)) {
        plain[i] = load_as<float4>(row[i] + size_t{d} * 4);
      } else {
        quad[i].load(rows, row[i], d);
      }
    }
#pragma unroll
    for (uint32_t i = 0; i < kEach; ++i) {
      const uint32_t key = warp + i * kWarps;
      if (key >= kTileKeys) continue;
      float4 values = plain[i];
      if (row[i] != nullptr && !own(first + key)) values = quad[i].values();
      *reinterpret_cast<float4*>(to + key * stride + d) = values;
    }
  }
}

// The sums of a warp's kQuads quads of heads and a tile of keys.
template <uint32_t kQuads>
struct DotTile {
  static constexpr uint32_t kHeads = kQuads * kQuad;
  float sum[kLaneKeys][kHeads];

  // keys: of the tile; quads: of the warp's first quad, [quad][dim].
  __device__ __forceinline__ void make(const float* keys, const float4* quads, uint32_t dim) {
    const uint32_t r = threadIdx.x % 8, stride = key_stride(dim);
    const float* own = keys + threadIdx.x % kWarp / 8 * kLaneKeys * stride;
#pragma unroll
    for (uint32_t i = 0; i < kLaneKeys; ++i)
#pragma unroll
      for (uint32_t h = 0; h < kHeads; ++h) sum[i][h] = 0.0f;
#pragma unroll 4
    for (uint32_t d = r; d < dim; d += 8) {
      float k[kLaneKeys];
#pragma unroll
      for (uint32_t i = 0; i < kLaneKeys; ++i) k[i] = own[i * stride + d];
#pragma unroll
      for (uint32_t j = 0; j < kQuads; ++j) {
        const float4 q = quads[j * dim + d];
#pragma unroll
        for (uint32_t i = 0; i < kLaneKeys; ++i) {
          sum[i][j * kQuad] = __fmaf_rn(q.x, k[i], sum[i][j * kQuad]);
          sum[i][j * kQuad + 1] = __fmaf_rn(q.y, k[i], sum[i][j * kQuad + 1]);
          sum[i][j * kQuad + 2] = __fmaf_rn(q.z, k[i], sum[i][j * kQuad + 2]);
          sum[i][j * kQuad + 3] = __fmaf_rn(q.w, k[i], sum[i][j * kQuad + 3]);
        }
      }
    }
    __syncwarp();
    fold<kHeads, 1>();
  }

  // Which of the heads a lane has the dot products of, in sum[key][0].
  __device__ __forceinline__ static uint32_t head() {
    const uint32_t r = threadIdx.x % 8;
    return kHeads == 8 ? (r & 1) * 4 + (r & 2) + (r >> 2) : (r & 1) * 2 + (r >> 1 & 1);
  }
  // Whether no other lane has the same.
  __device__ __forceinline__ static bool keeps() { return kHeads == 8 || threadIdx.x % 8 < kHeads; }

 private:
  // Adds the partial sums of lanes `step` apart. Of two lanes each keeps one half of the heads, as long as there are halves.
  template <uint32_t kLeft, uint32_t kStep>
  __device__ __forceinline__ void fold() {
    const bool upper = (threadIdx.x & kStep) != 0;
#pragma unroll
    for (uint32_t i = 0; i < kLaneKeys; ++i) {
      if constexpr (kLeft == 1) {
        sum[i][0] = __fadd_rn(sum[i][0], __shfl_xor_sync(kAll, sum[i][0], kStep));
      } else {
#pragma unroll
        for (uint32_t h = 0; h < kLeft / 2; ++h) {
          const float kept = upper ? sum[i][h + kLeft / 2] : sum[i][h], given = upper ? sum[i][h] : sum[i][h + kLeft / 2];
          sum[i][h] = __fadd_rn(kept, __shfl_xor_sync(kAll, given, kStep));
        }
      }
    }
    if constexpr (kStep < 4) fold<kLeft == 1 ? 1 : kLeft / 2, kStep * 2>();
  }
};

}  // namespace stet::cuda
