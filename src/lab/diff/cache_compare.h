// The KV rows of two decoders, element by element.
#pragma once

#include <array>
#include <optional>

#include "state/decoder.h"

namespace stet {

struct CacheMismatch {
  uint32_t layer = 0, position = 0, head = 0;
  const char* tensor = "";            // "keys", "values", "key scales", "value scales"
  uint32_t index = 0;                 // element of the head, or block of 32 for scales
  std::array<uint32_t, 2> bits = {};  // as they are stored: 32, 16 or 8 of them
  std::array<float, 2> values = {};
};

// The first element that differs in positions first .. first + count - 1, by layer, position, KV head, element; keys
// before values. *compared grows by the elements looked at. Both have fetched these positions.
std::optional<CacheMismatch> compare_cache(const std::array<const Decoder*, 2>& decoders, uint32_t first,
                                           uint32_t count, uint64_t* compared);

}  // namespace stet
