// The best of a list of scores, in an order that every machine agrees on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>

#include "base/fp.h"

namespace stet {

// A key that orders as (score descending, index ascending) orders: larger is better. NaN is worse than every number;
// the zeros are equal.
STET_BOTH static inline uint64_t best_key(float score, uint32_t index) {
  const uint32_t bits = bits_of_float(score + 0.0f);
  const uint32_t ordered = score != score ? 0 : (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t{ordered} << 32 | (0xffffffffu - index);
}
STET_BOTH static inline uint32_t index_of_key(uint64_t key) { return 0xffffffffu - static_cast<uint32_t>(key); }

// The keys of the best `count`, the best first. REQUIRES: count <= keys.size().
static inline void best_first(std::span<uint64_t> keys, size_t count) {
  std::partial_sort(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(count), keys.end(), std::greater<>());
}

}  // namespace stet
