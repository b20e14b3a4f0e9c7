// Scalar floating point that the contract needs: f16 and bf16 conversion, exact fused multiply-add, bits.
// No libm: every function gives the same bits on every machine (docs/numerics.md section 1). All have internal linkage, because
// this header is compiled once per instruction set and a linker must not choose one set's copy for another.
#pragma once

#include <cstdint>

#include "base/contract.h"

namespace stet {

STET_BOTH static inline float float_of_bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }
STET_BOTH static inline uint32_t bits_of_float(float x) { return __builtin_bit_cast(uint32_t, x); }

STET_BOTH static inline float bf16_to_f32(uint16_t h) { return float_of_bits(static_cast<uint32_t>(h) << 16); }

// Round to nearest even; NaN becomes a quiet NaN.
STET_BOTH static inline uint16_t f32_to_bf16(float x) {
  const uint32_t b = bits_of_float(x);
  if ((b & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((b >> 16) | 0x40u);
  return static_cast<uint16_t>((b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
}

STET_BOTH static inline float rounded_bf16(float x) { return bf16_to_f32(f32_to_bf16(x)); }
STET_BOTH static inline float rounded_if(bool rounded, float x) { return rounded ? rounded_bf16(x) : x; }

STET_BOTH static inline float f16_to_f32(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 0x1fu;
  const uint32_t mantissa = h & 0x3ffu;
  if (exponent == 0x1f) return float_of_bits(sign | 0x7f800000u | (mantissa << 13) | (mantissa ? 0x400000u : 0u));
  if (exponent != 0) return float_of_bits(sign | ((exponent + 112) << 23) | (mantissa << 13));
  // Subnormal: mantissa * 2^-24 is exact in f32.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return float_of_bits(sign | bits_of_float(magnitude));
}

// Round to nearest even, subnormals kept, overflow to infinity; NaN becomes a quiet NaN (payload kept as F16C does).
STET_BOTH static inline uint16_t f32_to_f16(float x) {
  const uint32_t b = bits_of_float(x);
  const uint16_t sign = static_cast<uint16_t>((b >> 16) & 0x8000u);
  const uint32_t a = b & 0x7fffffffu;
  if (a > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((a >> 13) & 0x3ffu));
  if (a >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and above round to infinity
  if (a >= 0x38800000u) {                                              // normal in f16
    const uint32_t r = a - 0x38000000u;
    return static_cast<uint16_t>(sign | ((r + 0xfffu + ((r >> 13) & 1u)) >> 13));
  }
  // Subnormal in f16: adding 0.5 puts the f16 unit 2^-24 at the last bit of the sum, so the addition does the rounding.
  const float shifted = float_of_bits(a) + 0.5f;
  return static_cast<uint16_t>(sign | (bits_of_float(shifted) - 0x3f000000u));
}

// a * b + c with one rounding, without the instruction: the product of two f32 is exact in f64; the sum is rounded to odd in
// f64, which makes the second rounding (to f32) harmless. Boldo and Melquiond, "Emulation of FMA and correctly rounded sums:
// proved algorithms using rounding to odd", IEEE Trans. Computers 57(4), 2008.
STET_BOTH static inline float fma32(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#elif defined(__FMA__)
  return __builtin_fmaf(a, b, c);
#else
  const double p = static_cast<double>(a) * static_cast<double>(b);
  const double z = static_cast<double>(c);
  double s = p + z;
  const double pz = s - p;
  const double error = (p - (s - pz)) + (z - pz);
  if (error != 0.0 && error - error == 0.0) {
    uint64_t bits = __builtin_bit_cast(uint64_t, s);
    if ((bits & 1u) == 0) {
      const bool away = (error > 0.0) == (s > 0.0);
      bits = away ? bits + 1 : bits - 1;
      s = __builtin_bit_cast(double, bits);
    }
  }
  return static_cast<float>(s);
#endif
}

// Nearest integer, ties to even, for |x| < 2^22 (the magic number trick; exact).
STET_BOTH static inline float rint32(float x) { return (x + 12582912.0f) - 12582912.0f; }

}  // namespace stet
