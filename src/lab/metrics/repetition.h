// Repetition loops: an answer that copies itself is what speculation is fastest at, and says nothing about any other
// text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace stet {

struct RepetitionLoop {
  uint32_t begin = 0;             // index of the first token of the stretch
  uint32_t tokens = 0;            // its length
  uint32_t period = 0;            // tokens of one round; 0: no exact cycle
  uint32_t distinct = 0, of = 0;  // without an exact cycle: distinct runs of 8 tokens among those of the stretch
};

// A stretch of an answer counts as a loop
// - when each of its tokens equals the one `period` before it, for a period of at most 128, and it holds at least 3
// rounds and at
//   least 64 tokens; of several the longest is returned, with the shorter period where two are equally long;
// - or, where there is none of these, when of all runs of 8 tokens in a window of 256 less than half are distinct (an
// answer of 128 to
//   255 tokens is one window; the first window is returned): sentences that differ in a word or a number.
std::optional<RepetitionLoop> repetition_loop(std::span<const int32_t> ids);

// "tokens 53 to 511 repeat a cycle of 14", "of the 8-token runs in tokens 44 to 299, 112 of 249 are distinct".
std::string shown(const RepetitionLoop& loop);

}  // namespace stet
