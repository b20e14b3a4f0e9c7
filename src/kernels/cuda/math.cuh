// exp and its friends on a device, operation by operation those of kernels/common/math_ref.h.
#pragma once

#include "kernels/common/math_constants.h"
#include "base/cuda/device.cuh"

namespace stet::cuda {

__device__ __forceinline__ float pow2(int n) { return __uint_as_float(static_cast<uint32_t>(n + 127) << 23); }

// kExp as a polynomial from term kTerm on. (Elements of a constexpr array are known on a device only as constants.)
template <int kTerm>
__device__ __forceinline__ float exp_terms(float p, float r) {
  if constexpr (kTerm == kExpTerms) {
    return p;
  } else {
    constexpr float term = kExp[kTerm];
    return exp_terms<kTerm + 1>(__fmaf_rn(p, r, term), r);
  }
}

__device__ __forceinline__ float exp_exact(float x) {
  if (x != x) return x;
  x = kExpLow > x ? kExpLow : x;
  x = kExpHigh < x ? kExpHigh : x;
  const float shifted = __fadd_rn(__fmul_rn(x, kLog2e), kRintMagic);
  const float n = __fsub_rn(shifted, kRintMagic);
  const float r = __fmaf_rn(n, -kLn2Low, __fmaf_rn(n, -kLn2High, x));
  constexpr float first = kExp[0];
  const float p = exp_terms<1>(first, r);
  const int exponent = static_cast<int>(n);
  const int half = exponent >> 1;
  return __fmul_rn(__fmul_rn(p, pow2(half)), pow2(exponent - half));
}

// log_ratio_ref.
__device__ __forceinline__ float log_ratio(float e, float numerator, float denominator) {
  constexpr float c0 = kLog[0], c1 = kLog[1], c2 = kLog[2], c3 = kLog[3];
  static_assert(kLogTerms == 4);
  const float z = __fdiv_rn(numerator, denominator), z2 = __fmul_rn(z, z);
  const float p = __fmaf_rn(__fmaf_rn(__fmaf_rn(c0, z2, c1), z2, c2), z2, c3);
  const float twice = __fadd_rn(z, z);
  const float log_m = __fmaf_rn(twice, __fmul_rn(z2, p), twice);
  return __fmaf_rn(e, kLn2High, __fmaf_rn(e, kLn2Low, log_m));
}

__device__ __forceinline__ float silu(float x) { return __fdiv_rn(x, __fadd_rn(1.0f, exp_exact(__fsub_rn(0.0f, x)))); }

// swiglu with clamped inputs: the comparisons are those of swiglu_limit_ref, and a NaN stays one.
__device__ __forceinline__ float swiglu_limit(float gate, float up, float limit) {
  const float g = gate > limit ? limit : gate, u = up > limit ? limit : up < -limit ? -limit : up;
  return __fmul_rn(silu(g), u);
}

// std::max(a, b) as the reference writes it: b only where a < b.
__device__ __forceinline__ float larger(float a, float b) { return a < b ? b : a; }

}  // namespace stet::cuda
