// F8_E4M3: 128 elements along K of one row in 129 bytes: the codes and the scale of a published block of 128 x 128,
// whose scale is repeated in each of its rows. Not a type of GGUF.
//
//   byte  0       scale     E8M0 (formats/e8m0.h)
//   byte  1..128  codes[j]  element j: sign, four bits of exponent e, three of mantissa m
//
// e4m3 = +- (e == 0 ? m : (8 + m) * 2^(e - 1)) / 512, up to 448; there is no infinity, codes 0x7f and 0xff are NaN.
// x = e4m3 * 2^(scale - 127): exact, subnormal results too, until it overflows to infinity. Scale 255: NaN.
// Encode: the least scale that holds the largest magnitude (at least 1e-30), then to nearest even.
#pragma once

#include <cstdint>

#include "formats/e8m0.h"

namespace stet {

struct BlockE4M3 {
  static constexpr uint32_t kElements = 128;
  static constexpr bool kIntegerBlock = true;
  uint8_t scale;
  uint8_t codes[128];
};
static_assert(sizeof(BlockE4M3) == 129);

constexpr float kLargestE4M3 = 448.0f;

STET_BOTH static inline bool is_nan_e4m3(uint8_t code) { return (code & 0x7f) == 0x7f; }

// 512 times the value, without its sign: below 2^18. REQUIRES: not NaN.
STET_BOTH static inline int magnitude_e4m3(uint8_t code) {
  const int e = code >> 3 & 15, m = code & 7;
  return e == 0 ? m : (8 + m) << (e - 1);
}
// 512 times the value. REQUIRES: not NaN.
STET_BOTH static inline int integer_e4m3(uint8_t code) { return code & 0x80 ? -magnitude_e4m3(code) : magnitude_e4m3(code); }

STET_BOTH static inline float e4m3_to_f32(uint8_t code) {
  const float size = static_cast<float>(magnitude_e4m3(code)) * 0x1p-9f;
  if (is_nan_e4m3(code)) return float_of_bits(0x7fc00000u);
  return code & 0x80 ? -size : size;
}

// To nearest even; what is beyond 448 becomes 448, with its sign.
STET_BOTH static inline uint8_t f32_to_e4m3(float x) {
  const uint32_t bits = bits_of_float(x), a = bits & 0x7fffffffu;
  const uint8_t sign = static_cast<uint8_t>(bits >> 24 & 0x80u);
  if (a > 0x7f800000u) return static_cast<uint8_t>(sign | 0x7f);
  if (a >= bits_of_float(kLargestE4M3)) return static_cast<uint8_t>(sign | 0x7e);
  if (a >= 0x3c800000u) {  // 2^-6, the least normal value
    const uint32_t r = a - 0x3c000000u;
    return static_cast<uint8_t>(sign | (r + 0x7ffffu + (r >> 20 & 1u)) >> 20);
  }
  // Adding 2^14 puts the unit 2^-9 at the last bit of the sum, so the addition does the rounding.
  return static_cast<uint8_t>(sign | (bits_of_float(float_of_bits(a) + 16384.0f) - bits_of_float(16384.0f)));
}

STET_BOTH static inline void decode_block(const BlockE4M3& b, float* out) {
  const float scale = e8m0_to_f32(b.scale);
  for (int j = 0; j < 128; ++j) out[j] = e4m3_to_f32(b.codes[j]) * scale;
}

}  // namespace stet
