// Starts that other machines disturbed: run again, kept in the events, and not counted.
#pragma once

#include <string>
#include <vector>

#include "lab/compare/plan.h"
#include "lab/packet/packet.h"

namespace stet {

struct RepeatedStart {
  std::string arm;
  uint32_t start = 0;  // as it ran
  std::string why;     // "steal: 31 of 1204 processor ticks went to other machines"
};

// What the first request or program of a start lost to other machines, by the rule of lab/metrics/system.h; empty:
// nothing worth mentioning. It looks at the machine's counters alone, never at a figure, so repeating says nothing
// about who is better.
std::string stolen_from(const Packet& packet, const std::string& arm, uint32_t start);

struct CountedRun {
  Packet packet;  // without the starts that were repeated; those that count have the numbers of their legs
  std::vector<RepeatedStart> repeated;
};

// Which starts count. In the order in which they ran every leg of the plan takes the first start of its arm that was
// not disturbed, or the last that the plan allows. Everything counts where the plan repeats nothing.
CountedRun counted_run(const ComparePlan& plan, const Packet& packet);

}  // namespace stet
