// The verdict of a comparison, from its raw events: what `stet compare` prints and `stet verify` recomputes.
#pragma once

#include <string>
#include <vector>

#include "lab/compare/disturbed.h"
#include "lab/compare/equality.h"
#include "lab/compare/pairs.h"
#include "lab/compare/plan.h"

namespace stet {

struct WitnessCount {
  Witness witness;
  std::optional<double> control, candidate;  // nothing: not reported
  bool holds() const { return control == 0.0 && candidate && *candidate > 0; }
};

struct JudgedSeries {
  std::string point;
  Figure figure;
  PhaseFigures aa, ab;
  Noise noise;
  std::vector<std::string> short_of;  // what it lacks to be promoted; empty: nothing
};

struct ArmSummary {
  uint32_t starts = 0, fresh = 0, requests = 0;
  uint64_t tokens = 0, cycles = 0, proposed = 0, accepted = 0, emitted = 0;
  std::vector<double> acceptance_by_position;
};

struct CompareVerdict {
  std::string verdict;                // "promoted", "not promoted", "void"
  std::vector<std::string> reasons;   // why it is void, or not promoted
  std::vector<std::string> unproven;  // what was not shown; nothing is promoted over it
  Equality equality;                  // of programs: not asked
  std::vector<WitnessCount> witnesses;
  std::vector<RepeatedStart> repeated;  // starts that do not count, because other machines disturbed them
  ArmSummary a, b;                      // of the starts that count
  std::vector<JudgedSeries> series;  // empty where the run is void, or its tokens are not proved: no number then
};

// Pure: from the plan and the events alone.
CompareVerdict judge_comparison(const ComparePlan& plan, const Packet& packet);

struct AaPhase {
  std::vector<std::string> faults;   // why the run is void already
  std::vector<JudgedSeries> series;  // without an A-B-B-A phase; empty where there are faults
};
// The same for the A/A phase alone, when it has run.
AaPhase judge_aa(const ComparePlan& plan, const Packet& packet);

// The rules of the plan, for one series of a run that is not void.
std::vector<std::string> shortcomings(const ComparePlan& plan, const JudgedSeries& series);

}  // namespace stet
