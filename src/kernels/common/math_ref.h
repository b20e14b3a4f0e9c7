// exp, scalar: x = n ln 2 + r, exp(x) = 2^n exp(r), every step f32 as written; 2^n in two factors, so that a subnormal result is
// rounded once. A NaN passes through.
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

static inline float silu_ref(float x) { return x / (1.0f + exp_ref(0.0f - x)); }

static inline float fold16_ref(const float* lanes) {
  float a[16];
  for (int i = 0; i < 16; ++i) a[i] = lanes[i];
  for (int width = 8; width >= 1; width /= 2)
    for (int i = 0; i < width; ++i) a[i] = a[i] + a[i + width];
  return a[0];
}

}  // namespace stet
