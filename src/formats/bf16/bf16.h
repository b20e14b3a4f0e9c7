// BF16: the upper 16 bits of an IEEE single, little-endian.
//
// Decode is exact. Encode rounds to nearest even.
#pragma once

#include <cstdint>

#include "base/fp.h"

namespace stet {

struct BlockBF16 {
  static constexpr uint32_t kElements = 1;
  static constexpr bool kIntegerBlock = false;
  uint16_t bits;
};
static_assert(sizeof(BlockBF16) == 2);

static inline void decode_block(const BlockBF16& b, float* out) { *out = bf16_to_f32(b.bits); }

}  // namespace stet
