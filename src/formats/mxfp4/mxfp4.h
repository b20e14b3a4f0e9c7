// MXFP4: 32 elements in 17 bytes, a power of two for a scale.
//
//   byte  0       scale  E8M0 (formats/e8m0.h)
//   byte  1..16   qs[j]  low nibble: element j, high nibble: element j + 16
//
// A nibble is a sign and three bits that stand for 0, .5, 1, 1.5, 2, 3, 4, 6. x = value * 2^(scale - 127): exact,
// subnormal results too, until it overflows to infinity. Scale 255: NaN. Encode: the least scale that holds the largest
// magnitude (at least 1e-30), then to nearest even.
#pragma once

#include <cstdint>

#include "formats/e8m0.h"

namespace stet {

struct BlockMxfp4 {
  static constexpr uint32_t kElements = 32;
  static constexpr bool kIntegerBlock = true;
  uint8_t scale;
  uint8_t qs[16];
};
static_assert(sizeof(BlockMxfp4) == 17);

constexpr float kLargestE2M1 = 6.0f;

// Twice the value of a nibble.
STET_BOTH static inline int integer_e2m1(int nibble) {
  constexpr int kTwice[8] = {0, 1, 2, 3, 4, 6, 8, 12};
  return nibble & 8 ? -kTwice[nibble & 7] : kTwice[nibble & 7];
}
STET_BOTH static inline float e2m1_to_f32(int nibble) {
  const float size = static_cast<float>(integer_e2m1(nibble & 7)) * 0.5f;
  return nibble & 8 ? -size : size;
}

STET_BOTH static inline void decode_block(const BlockMxfp4& b, float* out) {
  const float scale = e8m0_to_f32(b.scale);
  for (int j = 0; j < 16; ++j) {
    out[j] = e2m1_to_f32(b.qs[j] & 15) * scale;
    out[j + 16] = e2m1_to_f32(b.qs[j] >> 4) * scale;
  }
}

}  // namespace stet
