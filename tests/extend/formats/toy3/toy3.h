// TOY3: 32 elements in 34 bytes, one scale, three bits of each code byte.
//
//   byte  0..1   d     f16 scale
//   byte  2..33  q[j]  element j: the low three bits, 4 above their value
//
// x = float((q & 7) - 4) * d, one rounding.
// Encode: d = max|x| / 4, q = rint_even(x * (1/d)) in -4 .. 3.
#pragma once

#include <cstdint>

#include "base/fp.h"

namespace stet {

struct BlockToy3 {
  static constexpr uint32_t kElements = 32;
  static constexpr bool kIntegerBlock = true;
  uint16_t d;
  uint8_t q[32];

  int value(uint32_t i) const { return (q[i] & 7) - 4; }
};
static_assert(sizeof(BlockToy3) == 34);

static inline void decode_block(const BlockToy3& b, float* out) {
  const float scale = f16_to_f32(b.d);
  for (uint32_t j = 0; j < 32; ++j) out[j] = static_cast<float>(b.value(j)) * scale;
}

}  // namespace stet
