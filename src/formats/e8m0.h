// E8M0: a power of two in one byte, its exponent + 127; 255 is NaN. What the scales of F8_E4M3 and MXFP4 are.
#pragma once

#include <cstdint>

#include "base/fp.h"

namespace stet {

STET_BOTH static inline float e8m0_to_f32(uint8_t scale) {
  if (scale == 255) return float_of_bits(0x7fc00000u);
  return float_of_bits(scale == 0 ? 0x00400000u : uint32_t{scale} << 23);  // 2^-127 is subnormal
}

// The least e with a <= largest * 2^e. REQUIRES: both positive and normal.
STET_BOTH static inline int exponent_above(float a, float largest) {
  const uint32_t x = bits_of_float(a), y = bits_of_float(largest);
  return static_cast<int>(x >> 23) - static_cast<int>(y >> 23) + ((x & 0x7fffffu) > (y & 0x7fffffu) ? 1 : 0);
}

// 2^e. REQUIRES: -126 <= e <= 127.
STET_BOTH static inline float power_of_two(int e) { return float_of_bits(static_cast<uint32_t>(e + 127) << 23); }

}  // namespace stet
