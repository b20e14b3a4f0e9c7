// Q4_1: 32 elements in 20 bytes, one scale and one minimum.
//
//   byte  0..1   d      f16 scale
//   byte  2..3   m      f16 minimum
//   byte  4..19  qs[j]  low nibble: element j, high nibble: element j + 16
//
// x = float(q) * d + m, two roundings: the product, then the sum.
// Encode: d = (max - min) / 15, m = min, q = (x - min) * (1/d) + 0.5, truncated, at most 15. Reciprocal and minimum are
// the f32 ones; the block stores both rounded to f16.
#pragma once

#include <cstdint>

#include "base/fp.h"

namespace stet {

struct BlockQ4_1 {
  static constexpr uint32_t kElements = 32;
  static constexpr bool kIntegerBlock = true;
  uint16_t d;
  uint16_t m;
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ4_1) == 20);

static inline void decode_block(const BlockQ4_1& b, float* out) {
  const float scale = f16_to_f32(b.d);
  const float minimum = f16_to_f32(b.m);
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>(b.qs[j] & 15) * scale + minimum;
    out[j + 16] = static_cast<float>(b.qs[j] >> 4) * scale + minimum;
  }
}

}  // namespace stet
