// Q8_0: 32 elements in 34 bytes, one scale.
//
//   byte  0..1   d     f16 scale
//   byte  2..33  q[j]  signed byte of element j
//
// x = float(q) * d, one rounding (d widened exactly).
// Encode: d = max|x| / 127, q = x * (1/d) rounded half away from zero. The reciprocal is of the f32 d; the block stores
// d rounded to f16.
#pragma once

#include <cstdint>

#include "base/fp.h"

namespace stet {

struct BlockQ8_0 {
  static constexpr uint32_t kElements = 32;
  static constexpr bool kIntegerBlock = true;
  uint16_t d;
  int8_t q[32];
};
static_assert(sizeof(BlockQ8_0) == 34);

static inline void decode_block(const BlockQ8_0& b, float* out) {
  const float scale = f16_to_f32(b.d);
  for (int j = 0; j < 32; ++j) out[j] = static_cast<float>(b.q[j]) * scale;
}

}  // namespace stet
