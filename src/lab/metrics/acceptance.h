// What the cycles of a speculative answer say: how much was proposed, accepted and emitted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/record/events.h"

namespace stet {

struct AcceptanceCounts {
  uint64_t cycles = 0;
  uint64_t emitted = 0;  // tokens of these cycles, the target's own (the bonus) among them
  uint64_t proposed = 0, accepted = 0;
  std::vector<uint64_t> proposed_at;  // [i]: cycles with a proposal at position i ...
  std::vector<uint64_t> accepted_at;  // ... and how many of them accepted it
  std::vector<uint64_t> any_of;    // [d - 1]: of the cycles of depth d, those that accepted at least one proposal ...
  std::vector<uint64_t> all_of;    // ... and all d
  std::vector<uint64_t> of_depth;  // ... and how many there were

  // Adds the frames of a request that say their depth and what was accepted: one cycle each.
  void add(const RequestRecord& request);
  std::vector<double> by_position() const;
};

// Empty: nothing is wrong. Else why these counts must not be believed:
// "zero acceptance": 32 proposals or more, and none accepted;
// "flat acceptance": of 32 or more cycles of one depth, 3 or more, those that accepted anything accepted everything in
// at least 98 %: real drafts lose tokens on the way, and proposals that come from the answer itself do not.
std::string acceptance_alarm(const AcceptanceCounts& counts);

// Empty, or what contradicts itself in the frames of a request: more accepted than proposed, more emitted than accepted
// and one.
std::string cycle_contradiction(const RequestRecord& request);

}  // namespace stet
