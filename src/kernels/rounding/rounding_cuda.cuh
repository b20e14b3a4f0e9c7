// Roundings of a row that a warp holds: bits as rounding.h.
#pragma once

#include "kernels/cuda/warp_row.cuh"
#include "kernels/rounding/round_value.h"
#include "kernels/rounding/rounding.h"

namespace stet::cuda {

// The first n elements in groups of kGroup, each with its scale.
template <uint32_t kGroup, uint32_t kRegs, typename Scale, typename Round>
__device__ __forceinline__ void round_groups(WarpRow<kRegs>& row, uint32_t n, const Scale& scale_of, const Round& round) {
  constexpr uint32_t kStep = kGroup / kWarp;
  static_assert(kGroup % kWarp == 0 && kRegs % kStep == 0);
#pragma unroll
  for (uint32_t i = 0; i < kRegs; i += kStep) {
    if (i * kWarp >= n) continue;
    uint32_t most = 0;
#pragma unroll
    for (uint32_t j = i; j < i + kStep; ++j)
      if (row.place(j) < n) most = max(most, bits_of_float(row.x[j]) & 0x7fffffffu);
    const BlockScale scale = scale_of(__reduce_max_sync(kAll, most));
#pragma unroll
    for (uint32_t j = i; j < i + kStep; ++j)
      if (row.place(j) < n) row.x[j] = __fmul_rn(round(__fmul_rn(row.x[j], scale.inverse)), scale.d);
  }
}

template <uint32_t kRegs>
__device__ __forceinline__ void round_bf16(WarpRow<kRegs>& row) {
  row.each([](float& x, uint32_t) { x = rounded_bf16(x); });
}

// Groups of kGroup of the first n elements.
template <uint32_t kGroup, uint32_t kRegs>
__device__ __forceinline__ void round_e4m3(WarpRow<kRegs>& row, uint32_t n) {
  round_groups<kGroup>(row, n, [](uint32_t most) { return plane_scale(most); }, [](float v) { return to_e4m3(v); });
}

template <uint32_t kRegs>
__device__ __forceinline__ void round_e2m1(WarpRow<kRegs>& row) {
  round_groups<kIndexGroup>(row, row.n, [](uint32_t most) { return index_scale(most); }, [](float v) { return to_e2m1(v); });
}

// REQUIRES: n a power of two.
template <uint32_t kRegs>
__device__ __forceinline__ void hadamard(WarpRow<kRegs>& row) {
  const uint32_t lane = threadIdx.x % kWarp, log2 = 31 - __clz(row.n);
#pragma unroll
  for (uint32_t half = 1; half < kWarp; half *= 2) {
    if (half >= row.n) break;
#pragma unroll
    for (uint32_t i = 0; i < kRegs; ++i) {
      const float other = __shfl_xor_sync(kAll, row.x[i], half);
      row.x[i] = (lane & half) == 0 ? __fadd_rn(row.x[i], other) : __fsub_rn(other, row.x[i]);
    }
  }
#pragma unroll
  for (uint32_t half = 1; half < kRegs; half *= 2) {
    if (half * kWarp >= row.n) break;
#pragma unroll
    for (uint32_t i = 0; i < kRegs; ++i) {
      if ((i & half) != 0) continue;
      const float a = row.x[i], b = row.x[i + half];
      row.x[i] = __fadd_rn(a, b);
      row.x[i + half] = __fsub_rn(a, b);
    }
  }
  const float scale = power_of_two(-static_cast<int>(log2 / 2)) * (log2 % 2 == 0 ? 1.0f : 0.70710678118654752f);
  row.each([&](float& x, uint32_t) { x = __fmul_rn(x, scale); });
}

template <uint32_t kRegs>
__device__ __forceinline__ void round_cached(WarpRow<kRegs>& row, uint32_t rope_dim) {
  round_e4m3<kCacheGroup>(row, row.n - rope_dim);
  row.each(row.n - rope_dim, row.n, [](float& x, uint32_t) { x = rounded_bf16(x); });
}

template <uint32_t kRegs>
__device__ __forceinline__ void round_indexed(WarpRow<kRegs>& row) {
  round_bf16(row);
  hadamard(row);
  round_bf16(row);
  round_e2m1(row);
}

// Throws Error(kUnsupported).
inline void check_indexed_width(uint32_t n) {
  if ((n & (n - 1)) != 0) fail_cuda_kernel("elements of an indexer's row, which are no power of two", n, "use --device cpu");
}

}  // namespace stet::cuda
