// Whether the answers of a comparison are what its plan says they must be.
#pragma once

#include <string>
#include <vector>

#include "lab/compare/plan.h"
#include "lab/packet/packet.h"

namespace stet {

struct Equality {
  bool proved = false;
  std::string basis;                  // what was compared, in words
  uint32_t compared = 0, equal = 0;   // answers
  std::vector<std::string> faults;    // differences: the first of each comparison
  std::vector<std::string> unproven;  // what could not be compared
};

// One arm with itself, over the starts that there are.
void judge_repeats(const ComparePlan& plan, const Packet& packet, const std::string& arm, Equality& result);

// Every arm with itself over all its starts; then, as the plan says, B with A: ids, or ids and the depth and acceptance
// of every cycle.
Equality judge_equality(const ComparePlan& plan, const Packet& packet);

}  // namespace stet
