// From raw events to pairs of figures, and from pairs to what a phase (A/A, or A-B-B-A) says.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lab/compare/plan.h"
#include "lab/metrics/metrics.h"
#include "lab/packet/packet.h"

namespace stet {

// A prompt (or a point of a program) on both sides of a pair of starts.
struct PairedValue {
  std::string id, step_class;
  double a = 0, b = 0;  // the figure
};

struct StartPair {
  uint32_t round = 0;
  uint32_t a_start = 0, b_start = 0;  // of arm A; of arm B, or of A in the A/A phase
  std::vector<PairedValue> values;    // in the order of the plan
};

// One figure at one point: what is judged.
struct Series {
  std::string point;  // empty for suites
  Figure figure;
  std::vector<StartPair> aa, ab;
};

// A figure of a request; nothing where it has none. Names: plan.h.
std::optional<double> request_figure(const RequestFigures& figures, const std::string& name);

enum class Phases : uint8_t { aa_only, both };

// The series of the plan. figures: of every request of the packet, in its order. Says in `faults` what cannot be
// paired, and why. aa_only: nothing is asked of the A-B-B-A phase, which has not run yet.
std::vector<Series> series_of(const ComparePlan& plan, const Packet& packet, const std::vector<RequestFigures>& figures,
                              Phases phases, std::vector<std::string>& faults);

struct PromptRatio {
  std::string id, step_class;
  double ratio = 0;
};

// Ratios are above 1 where B is better, whether a higher or a lower figure is.
struct PhaseFigures {
  double a_median = 0, b_median = 0;  // of the figure: medians over prompts of the median over starts
  double ratio = 0;                   // the median over prompts of each prompt's median ratio
  Interval interval;                  // of that median
  std::vector<double> pair_ratios;    // of every pair of starts: the median over prompts
  std::vector<uint32_t> pair_wins;    // prompts in which B is better
  std::vector<PromptRatio> prompts;   // empty where there is one prompt only
  std::optional<double> saving_ms;  // the median over prompts of what B saves: per token for rates; for times their own
  double a_worst_start = 0, b_worst_start = 0;  // the median over prompts of the worst start
};
// REQUIRES: at least one pair, and the same prompts in all pairs.
PhaseFigures phase_figures(const std::vector<StartPair>& pairs, const Figure& figure, const Bootstrap& plan);

}  // namespace stet
