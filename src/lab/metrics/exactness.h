// Whether two answers are the same tokens, and where they part.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/record/events.h"

namespace stet {

struct TokenDifference {
  uint32_t position = 0;                   // index in the answer, from 0
  std::optional<int32_t> expected, found;  // nothing: that answer ended before
};

// Whether the ids of an answer are known: a frame has them, or its client left before the first token came.
bool ids_known(const RequestRecord& request);

// prefix: the shorter one may end anywhere (its client left); else both must end at the same place.
std::optional<TokenDifference> first_difference(std::span<const int32_t> expected, std::span<const int32_t> found,
                                                bool prefix = false);

// The same steps over several starts: every start's answer is compared with the first one's.
struct RepeatTest {
  uint32_t starts = 0, fresh_starts = 0;
  uint32_t steps = 0;                // that were answered with ids in every start
  uint32_t equal = 0;                // of those, with the same prompt and the same ids in every start
  std::string first;                 // the first difference: step, start, position, both ids; empty: none
  std::vector<std::string> missing;  // steps that some start lacks, or that have no ids

  // At least two starts, all of them fresh, and every step equal.
  bool holds() const { return starts >= 2 && fresh_starts == starts && steps > 0 && equal == steps && missing.empty(); }
};
// requests: of one arm. A step is known by its id, which is unique in a start.
RepeatTest repeat_test(std::span<const StartRecord> starts, std::span<const RequestRecord* const> requests);

// "position 17: expected 42, found 43", "position 17: expected the end, found 43".
std::string shown(const TokenDifference& difference);

// SHA-256 of ids as little-endian int32, as `stet run` prints it.
std::string token_digest(std::span<const int32_t> ids);

}  // namespace stet
