// exp for one instruction set; math_ref.h is its scalar twin and says how it works.
#pragma once

#include "kernels/common/math_constants.h"

namespace stet::STET_ISA {

static inline F pow2(I n) { return as_float(shl<23>(iadd(n, iset1(127)))); }

static inline F exp(F x) {
  x = min_keep(set1(kExpHigh), max_keep(set1(kExpLow), x));
  const F shifted = add(mul(x, set1(kLog2e)), set1(kRintMagic));
  const F n = sub(shifted, set1(kRintMagic));
  const F r = fma(n, set1(-kLn2Low), fma(n, set1(-kLn2High), x));
  F p = set1(kExp[0]);
  for (int i = 1; i < kExpTerms; ++i) p = fma(p, r, set1(kExp[i]));
  const I exponent = to_int(n);
  const I half = sar<1>(exponent);
  return mul(mul(p, pow2(half)), pow2(isub(exponent, half)));
}

// x / (1 + exp(-x))
static inline F silu(F x) { return div(x, add(set1(1.0f), exp(sub(zero(), x)))); }

// Sum of 16 lanes: lanes i and i + 8, then i + 4, i + 2, i + 1.
static inline float fold16(const float* lanes) {
  float a[8];
  for (int i = 0; i < 8; ++i) a[i] = lanes[i] + lanes[i + 8];
  for (int i = 0; i < 4; ++i) a[i] = a[i] + a[i + 4];
  for (int i = 0; i < 2; ++i) a[i] = a[i] + a[i + 2];
  return a[0] + a[1];
}

}  // namespace stet::STET_ISA
