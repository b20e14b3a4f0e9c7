// Q4_0: 32 elements in 18 bytes, one scale, no minimum.
//
//   byte  0..1   d      f16 scale
//   byte  2..17  qs[j]  low nibble: element j, high nibble: element j + 16
//
// x = float(q - 8) * d, one rounding (d widened exactly).
// Encode: d = (the element of largest magnitude, with its sign) / -8, so that this element becomes q = 0; q = x * (1/d)
// + 8.5, truncated, at most 15. The reciprocal is of the f32 d; the block stores d rounded to f16.
#pragma once

#include <cstdint>

#include "base/fp.h"

namespace stet {

struct BlockQ4_0 {
  static constexpr uint32_t kElements = 32;
  static constexpr bool kIntegerBlock = true;
  uint16_t d;
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ4_0) == 18);

static inline void decode_block(const BlockQ4_0& b, float* out) {
  const float scale = f16_to_f32(b.d);
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>((b.qs[j] & 15) - 8) * scale;
    out[j + 16] = static_cast<float>((b.qs[j] >> 4) - 8) * scale;
  }
}

}  // namespace stet
