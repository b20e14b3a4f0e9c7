// exp and log, scalar, every step f32 as written. exp: x = n ln 2 + r, exp(x) = 2^n exp(r), 2^n in two factors, so that a
// subnormal result is rounded once; a NaN passes through. log: math_constants.h says how.
#pragma once

#include "base/fp.h"
#include "kernels/common/math_constants.h"

namespace stet {

static inline float pow2_ref(int n) { return float_of_bits(static_cast<uint32_t>(n + 127) << 23); }

static inline float exp_ref(float x) {
  if (x != x) return x;
  x = kExpLow > x ? kExpLow : x;
  x = kExpHigh < x ? kExpHigh : x;
  const float shifted = x * kLog2e + kRintMagic;
  const float n = shifted - kRintMagic;
  const float r = fma32(n, -kLn2Low, fma32(n, -kLn2High, x));
  float p = kExp[0];
  for (int i = 1; i < kExpTerms; ++i) p = fma32(p, r, kExp[i]);
  const int exponent = static_cast<int>(n);
  const int half = exponent >> 1;
  return (p * pow2_ref(half)) * pow2_ref(exponent - half);
}

// e ln 2 + log(m), where numerator / denominator is (m - 1) / (m + 1): kLog says how.
static inline float log_ratio_ref(float e, float numerator, float denominator) {
  const float z = numerator / denominator;
  const float z2 = z * z;
  float p = kLog[0];
  for (int i = 1; i < kLogTerms; ++i) p = fma32(p, z2, kLog[i]);
  const float twice = z + z;
  const float log_m = fma32(twice, z2 * p, twice);
  return fma32(e, kLn2High, fma32(e, kLn2Low, log_m));
}

// x = 2^e m, m in [sqrt(1/2), sqrt(2)).
struct ScaledRef {
  float e, m;
};
static inline ScaledRef split_log_ref(float x) {
  const int32_t bits = static_cast<int32_t>(bits_of_float(x));
  const int32_t e = (bits - kSqrtHalfBits) >> 23;
  return {static_cast<float>(e), float_of_bits(static_cast<uint32_t>(bits) - (static_cast<uint32_t>(e) << 23))};
}

// The natural logarithm of a positive, finite, normal x; nothing is promised for others.
static inline float log_ref(float x) {
  const ScaledRef s = split_log_ref(x);
  return log_ratio_ref(s.e, s.m - 1.0f, s.m + 1.0f);
}

static inline float silu_ref(float x) { return x / (1.0f + exp_ref(0.0f - x)); }

static inline float fold16_ref(const float* lanes) {
  float a[16];
  for (int i = 0; i < 16; ++i) a[i] = lanes[i];
  for (int width = 8; width >= 1; width /= 2)
    for (int i = 0; i < width; ++i) a[i] = a[i] + a[i + width];
  return a[0];
}

}  // namespace stet
