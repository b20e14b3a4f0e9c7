// Witnesses: an option under test must leave a trace in what the processes counted, else the run says nothing about it.
//
//   proposed, accepted        proposals of all cycles, and those that stood
//   deeper:N                  cycles that proposed more than N tokens
//   identity:NAME=VALUE       starts whose process says of itself that NAME is VALUE
//   metrics:NAME              growth of a counter of /metrics over the legs of the arm (note "counters")
//   figure:NAME               sum of a figure that the arm's program prints
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/compare/arm_spec.h"
#include "lab/packet/packet.h"

namespace stet {

struct Witness {
  std::string option;   // what is under test: "--draft"; free text for arms that are no serve arms
  std::string counter;  // as above: 0 in A, not 0 in B
};

// "OPTION=COUNTER". Throws Error(kUsage) for a counter of no known form.
Witness parse_witness(const std::string& text);
// Throws Error(kUsage).
void check_counter(const std::string& counter);
// The part behind "metrics:"; nothing for other counters.
std::optional<std::string> metric_of(const std::string& counter);

// Witnesses for the differences of two serve arms: those given, and the usual ones for options that have one. Throws
// Error(kUsage) that names an option without a witness.
std::vector<Witness> witnesses_for(const ArmSpec& a, const ArmSpec& b, std::vector<Witness> given);

// What an arm counted; nothing where it does not report the counter.
std::optional<double> count_witness(const std::string& counter, const Packet& packet, const std::string& arm);

}  // namespace stet
