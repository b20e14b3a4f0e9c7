// Repetition loops: an answer that copies itself is what speculation is fastest at, and says nothing about any other
// text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace stet {

struct RepetitionLoop {
  uint32_t begin = 0;   // index of the first token of the stretch
  uint32_t tokens = 0;  // its length
  uint32_t period = 0;  // tokens of one round
};

// A stretch counts as a loop when each of its tokens equals the one `period` before it, period at most 128, and it
// holds at least 4 rounds and at least 64 tokens. Returns the longest one; the shorter period where two are equally
// long.
std::optional<RepetitionLoop> repetition_loop(std::span<const int32_t> ids);

}  // namespace stet
