// Scores and weighted sums of kQueries query heads over one chunk in shared memory, bits as attend.h.
#pragma once

#include "kernels/attend/kv_place.cuh"
#include "kernels/cuda/math.cuh"

namespace stet::cuda {

constexpr uint32_t kStepThreads = 512;
constexpr uint32_t kQueries = 4;  // attended together

template <KvFormat kFormat>
struct AttendShared {
  KvPlace<kFormat> chunk;
  float* rope;   // [row][2][rope_dim]
  float* q;      // [head_dim][kQueries]
  float* pairs;  // [4][kQueries][kSlots]: sums over d = 2c and 2c + 1 (mod 8)
  float* p;      // [kQueries][kSlots]
  float* most;   // [warps]: the largest score that each saw
  float* sums;   // [kQueries][2]: m, l
  int8_t* q8;    // [kQueries][head_dim], of q8
  float* dq;     // [kQueries][head_dim / 32], of q8
};

// Thread: a slot and a quarter of the eight partial sums; then a slot and a query.
template <KvFormat kFormat>
__device__ __forceinline__ void score(const AttendShared<kFormat>& s, uint32_t n, float scale) {
  const uint32_t slot = threadIdx.x % kSlots, quarter = threadIdx.x / kSlots, dim = s.chunk.dim;
  if (slot < n) {
    const auto* keys =
        reinterpret_cast<const typename KvElement<kFormat>::Type*>(s.chunk.keys) + s.chunk.key_element(slot, 0);
    float sum[2][kQueries] = {};
#pragma unroll 4
    for (uint32_t d0 = 2 * quarter; d0 < dim; d0 += 8)
#pragma unroll
      for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t d = d0 + i;
        if (i == 1 && d >= dim) continue;
        const float k = as_float(keys[d * kSlotGroup]);
        const float4 q = *reinterpret_cast<const float4*>(s.q + d * kQueries);
        sum[i][0] = __fmaf_rn(q.x, k, sum[i][0]);
        sum[i][1] = __fmaf_rn(q.y, k, sum[i][1]);
        sum[i][2] = __fmaf_rn(q.z, k, sum[i][2]);
        sum[i][3] = __fmaf_rn(q.w, k, sum[i][3]);
      }
#pragma unroll
    for (uint32_t j = 0; j < kQueries; ++j)
      s.pairs[(quarter * kQueries + j) * kSlots + slot] = __fadd_rn(sum[0][j], sum[1][j]);
  }
  __syncthreads();
  const float* pair = s.pairs + threadIdx.x;  // quarter is the query now
  constexpr uint32_t kStride = kQueries * kSlots;
  const float dot = __fadd_rn(__fadd_rn(pair[0], pair[kStride]), __fadd_rn(pair[2 * kStride], pair[3 * kStride]));
  if (slot < n) s.p[threadIdx.x] = __fmul_rn(dot, scale);
}
template <>
__device__ __forceinline__ void score<KvFormat::q8>(const AttendShared<KvFormat::q8>& s, uint32_t n, float scale) {
  const uint32_t slot = threadIdx.x % kSlots, query = threadIdx.x / kSlots, dim = s.chunk.dim, blocks = dim / 32;
  if (slot >= n) return;
  const float* scales = s.chunk.key_scales() + slot / kSlotGroup * blocks * kSlotGroup + slot % kSlotGroup;
  float acc = 0.0f;
  for (uint32_t b = 0; b < blocks; ++b) {
    const uint32_t* codes = reinterpret_cast<const uint32_t*>(s.chunk.keys + s.chunk.key_element(slot, b * 32));
    const int32_t* q = reinterpret_cast<const int32_t*>(s.q8 + query * dim + b * 32);
    int32_t sum = 0;
#pragma unroll
    for (uint32_t w = 0; w < 8; ++w) sum = __dp4a(static_cast<int32_t>(codes[w * kSlotGroup] ^ 0x80808080u), q[w], sum);
    acc = __fmaf_rn(__fmul_rn(s.dq[query * blocks + b], scales[b * kSlotGroup]), static_cast<float>(sum), acc);
  }
  s.p[threadIdx.x] = __fmul_rn(acc, scale);
}

// m of each query, and exp(score - m) in the place of the scores: a thread a slot of a query.
template <KvFormat kFormat>
__device__ __forceinline__ void exp_scores(const AttendShared<kFormat>& s, uint32_t n) {
  const uint32_t slot = threadIdx.x % kSlots, query = threadIdx.x / kSlots;
  const float x = s.p[query * kSlots + min(slot, n - 1)];
  float m = x;
#pragma unroll
  for (uint32_t width = kWarp / 2; width >= 1; width /= 2) m = larger(m, __shfl_xor_sync(kAll, m, width));
  if (threadIdx.x % kWarp == 0) s.most[threadIdx.x / kWarp] = m;
  __syncthreads();
  const float4 of_warps = *reinterpret_cast<const float4*>(s.most + query * 4);
  m = larger(larger(of_warps.x, of_warps.y), larger(of_warps.z, of_warps.w));
  if (slot < n) s.p[threadIdx.x] = exp_exact(__fsub_rn(x, m));
  if (slot == 0) s.sums[query * 2] = m;
}

// l of a query by a warp: 16 lanes, folded.
template <KvFormat kFormat>
__device__ __forceinline__ void sum_scores(const AttendShared<kFormat>& s, uint32_t n, uint32_t query) {
  const float* p = s.p + query * kSlots;
  float l = 0.0f;
#pragma unroll
  for (uint32_t i = 0; i < kSlots / 16; ++i)
    if (const uint32_t j = i * 16 + threadIdx.x % 16; j < n) l = __fadd_rn(l, p[j]);
#pragma unroll
  for (uint32_t width = 8; width >= 1; width /= 2) l = __fadd_rn(l, __shfl_down_sync(kAll, l, width));
  if (threadIdx.x % kWarp == 0) s.sums[query * 2 + 1] = l;
}

// Value d of a slot.
template <KvFormat kFormat>
__device__ __forceinline__ float value_of(const KvPlace<kFormat>& c, uint32_t slot, uint32_t d) {
  const uint32_t at = slot * c.value_stride() + d;
  if constexpr (kFormat == KvFormat::q8) {
    return __fmul_rn(static_cast<float>(static_cast<int8_t>(c.values[at])), c.value_scales()[slot * (c.dim / 32) + d / 32]);
  } else {
    return as_float(reinterpret_cast<const typename KvElement<kFormat>::Type*>(c.values)[at]);
  }
}

// Element d of the weighted sum of values of one query.
template <KvFormat kFormat>
__device__ __forceinline__ float weigh(const AttendShared<kFormat>& s, uint32_t n, uint32_t query, uint32_t d) {
  constexpr uint32_t kRun = kFormat == KvFormat::q8 ? 8 : 16;  // as many as there are registers for
  const float* p = s.p + query * kSlots;
  float o = 0.0f;
  uint32_t j = 0;
  // A run's values are all asked for before the first is used: the sum is one chain.
#pragma unroll 1
  for (; j + kRun <= n; j += kRun) {
    float v[kRun];
    float4 w[kRun / 4];
#pragma unroll
    for (uint32_t i = 0; i < kRun; ++i) v[i] = value_of(s.chunk, j + i, d);
#pragma unroll
    for (uint32_t i = 0; i < kRun / 4; ++i) w[i] = *reinterpret_cast<const float4*>(p + j + 4 * i);
#pragma unroll
    for (uint32_t i = 0; i < kRun; i += 4) {
      o = __fmaf_rn(w[i / 4].x, v[i], o);
      o = __fmaf_rn(w[i / 4].y, v[i + 1], o);
      o = __fmaf_rn(w[i / 4].z, v[i + 2], o);
      o = __fmaf_rn(w[i / 4].w, v[i + 3], o);
    }
  }
#pragma unroll 1
  for (; j < n; ++j) o = __fmaf_rn(p[j], value_of(s.chunk, j, d), o);
  return o;
}

}  // namespace stet::cuda
