// Entries pooled on a device: bits as pool_entry_ref.
#pragma once

#include "kernels/cuda/math.cuh"
#include "kernels/entries/entries.h"

namespace stet::cuda {

constexpr uint32_t kMostPooled = 2 * kSlots;

// The rows that an entry is pooled from, at the first channel that counts.
struct PooledRows {
  const float* row[kMostPooled];
};

// By a whole block of threads; the next barrier is the caller's. Gives how many rows there are.
__device__ __forceinline__ uint32_t find_pooled_rows(const PoolSpec& spec, uint32_t entry, PooledRows& rows) {
  const uint32_t r = spec.ratio(), before = spec.overlap && entry > 0 ? r : 0, n = before + r;
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
    rows.row[i] = spec.rows.row(r * entry - before + i) + (i < before ? 0 : spec.rows.width / 2 - spec.size());
  return n;
}

// f(i, x) for elements `at` of all rows, in order; some of them are asked for together.
template <typename F>
__device__ __forceinline__ void each_pooled(const PooledRows& rows, uint32_t n, uint32_t at, const F& f) {
  constexpr uint32_t kRun = 16;
#pragma unroll 1
  for (uint32_t first = 0; first < n; first += kRun) {
    float x[kRun];
#pragma unroll
    for (uint32_t i = 0; i < kRun; ++i) x[i] = first + i < n ? rows.row[first + i][at] : 0.0f;
#pragma unroll
    for (uint32_t i = 0; i < kRun; ++i)
      if (first + i < n) f(first + i, x[i]);
  }
}

// Channel d of an entry. width: of c.
__device__ __forceinline__ float pool_channel(const PooledRows& rows, uint32_t n, uint32_t width, uint32_t d) {
  float most = rows.row[0][width + d], sum = 0.0f, pooled = 0.0f;
  each_pooled(rows, n, width + d, [&](uint32_t i, float z) { most = i == 0 ? most : larger(most, z); });
  each_pooled(rows, n, width + d, [&](uint32_t, float z) { sum = __fadd_rn(sum, exp_exact(__fsub_rn(z, most))); });
  each_pooled(rows, n, width + d, [&](uint32_t i, float z) {
    pooled = __fmaf_rn(__fdiv_rn(exp_exact(__fsub_rn(z, most)), sum), rows.row[i][d], pooled);
  });
  return pooled;
}

}  // namespace stet::cuda
