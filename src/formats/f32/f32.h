// F32: one IEEE single, little-endian.
#pragma once

#include <cstdint>

#include "base/fp.h"

namespace stet {

struct BlockF32 {
  static constexpr uint32_t kElements = 1;
  static constexpr bool kIntegerBlock = false;
  float x;
};
static_assert(sizeof(BlockF32) == 4);

static inline void decode_block(const BlockF32& b, float* out) { *out = b.x; }

}  // namespace stet
