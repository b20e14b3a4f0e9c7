// Norm and rotation of a row that a warp holds: bits as heads.h.
#pragma once

#include "base/fp.h"
#include "kernels/cuda/norm.cuh"
#include "kernels/cuda/warp_row.cuh"
#include "kernels/heads/heads.h"

namespace stet::cuda {

// The 256 lanes of a norm's sum (element mod 256), each accumulated by add(sum, x) in the order of the elements, then folded in halves.
template <uint32_t kRegs, typename Add>
__device__ __forceinline__ float norm_sum(WarpRow<kRegs>& row, const Add& add) {
  float sum[kNormRows] = {};
#pragma unroll
  for (uint32_t i = 0; i < kRegs; ++i)
    if (row.place(i) < row.n) sum[i % kNormRows] = add(sum[i % kNormRows], row.x[i]);
  return fold_norm_lanes(sum);
}

// 1 / sqrt(mean of squares + eps), as inverse_rms_ref.
template <uint32_t kRegs>
__device__ __forceinline__ float inverse_rms(WarpRow<kRegs>& row, float eps) {
  return inverse_root_of_mean(norm_sum(row, [](float a, float x) { return __fmaf_rn(x, x, a); }), row.n, eps);
}

template <uint32_t kRegs>
__device__ __forceinline__ void unit_head(WarpRow<kRegs>& row, float eps) {
  const float r = inverse_rms(row, eps);
  row.each([&](float& x, uint32_t) { x = __fmul_rn(x, r); });
}

template <uint32_t kRegs>
__device__ __forceinline__ void unit_head_bf16(WarpRow<kRegs>& row, float eps) {
  const float sum = norm_sum(row, [](float a, float x) { return __fadd_rn(a, rounded_bf16(__fmul_rn(x, x))); });
  const float mean = rounded_bf16(__fdiv_rn(sum, static_cast<float>(row.n)));
  const float r = rounded_bf16(__fdiv_rn(1.0f, __fsqrt_rn(rounded_bf16(__fadd_rn(mean, eps)))));
  row.each([&](float& x, uint32_t) { x = rounded_bf16(__fmul_rn(x, r)); });
}

// One element of a pair, turned: `at` is its place in the tail.
__device__ __forceinline__ float turned(float own, float other, RopeRow rope, uint32_t at, bool inverse) {
  const float sin = rope.sin[at];
  return __fadd_rn(__fmul_rn(own, rope.cos[at]), __fmul_rn(other, inverse ? -sin : sin));
}

// REQUIRES: n - rope_dim even, so that neighbouring lanes have the elements of a pair.
template <uint32_t kRegs>
__device__ __forceinline__ void rotate_tail(WarpRow<kRegs>& row, RopeRow rope, uint32_t rope_dim, bool inverse) {
  const uint32_t first = row.n - rope_dim;
#pragma unroll
  for (uint32_t i = 0; i < kRegs; ++i) {
    if ((i + 1) * kWarp <= first || i * kWarp >= row.n) continue;
    const float other = __shfl_xor_sync(kAll, row.x[i], 1);
    const uint32_t d = row.place(i);
    if (d >= first && d < row.n) row.x[i] = turned(row.x[i], other, rope, d - first, inverse);
  }
}

// Throws Error(kUnsupported).
inline void check_rotation(uint32_t n, uint32_t rope_dim) {
  if (n % 2 != 0) fail_cuda_kernel("elements of a row whose end is rotated", n, "use --device cpu");
  if (rope_dim % 2 != 0 || rope_dim > n) fail_cuda_kernel("rotated elements", rope_dim, "use --device cpu");
}

}  // namespace stet::cuda
