// exp and log for one instruction set; math_ref.h is their scalar twin and says how they work.
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
  STET_UNROLL
  for (int i = 1; i < kExpTerms; ++i) p = fma(p, r, set1(kExp[i]));
  const I exponent = to_int(n);
  const I half = sar<1>(exponent);
  return mul(mul(p, pow2(half)), pow2(isub(exponent, half)));
}

static inline F log_ratio(F e, F numerator, F denominator) {
  const F z = div(numerator, denominator);
  const F z2 = mul(z, z);
  F p = set1(kLog[0]);
  STET_UNROLL
  for (int i = 1; i < kLogTerms; ++i) p = fma(p, z2, set1(kLog[i]));
  const F twice = add(z, z);
  const F log_m = fma(twice, mul(z2, p), twice);
  return fma(e, set1(kLn2High), fma(e, set1(kLn2Low), log_m));
}

struct Scaled {
  F e, m;
};
static inline Scaled split_log(F x) {
  const I e = sar<23>(isub(as_int(x), iset1(kSqrtHalfBits)));
  return {to_float(e), as_float(isub(as_int(x), shl<23>(e)))};
}

static inline F log(F x) {
  const Scaled s = split_log(x);
  return log_ratio(s.e, sub(s.m, set1(1.0f)), add(s.m, set1(1.0f)));
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
