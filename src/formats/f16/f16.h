// F16: one IEEE half, little-endian.
//
// Decode is exact. Encode rounds to nearest even and keeps subnormals; what f16 cannot hold (65520 and above) is
// refused, because an infinite weight would poison every row.
#pragma once

#include <cstdint>

#include "base/fp.h"

namespace stet {

struct BlockF16 {
  static constexpr uint32_t kElements = 1;
  static constexpr bool kIntegerBlock = false;
  uint16_t bits;
};
static_assert(sizeof(BlockF16) == 2);

static inline void decode_block(const BlockF16& b, float* out) { *out = f16_to_f32(b.bits); }

}  // namespace stet
