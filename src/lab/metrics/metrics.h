// Figures from raw events. Pure functions: no clock, no file, no locale.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/record/events.h"

namespace stet {

// Rates over tokens 1 .. n: t the arrival time of each token in ns (tokens that arrive together share one), first_chunk
// the number of tokens that arrived first.
struct WindowRate {
  uint32_t tokens = 0;     // n
  uint32_t intervals = 0;  // n - first_chunk: what the time between first and last contains
  double seconds = 0;
  double interval_rate = 0;              // intervals / seconds
  double historical_inclusive_rate = 0;  // n / seconds: off by one, kept because records were published with it
  uint32_t quantum = 0;  // the most of the n tokens that share one time: the window's ends are known to so many tokens
};
// Nothing where fewer than n tokens came or no time passed.
std::optional<WindowRate> window_rate(std::span<const int64_t> t, uint32_t first_chunk, uint32_t n);

struct RequestFigures {
  uint32_t tokens = 0;
  std::optional<double> ttft_seconds;
  std::optional<WindowRate> first_100, all;
  double wall_rate = 0;                // tokens / (end - sent)
  std::optional<double> prefill_rate;  // prompt tokens / ttft
  std::optional<double> tokens_per_cycle, tokens_per_cycle_without_bonus, target_passes_per_second;
  std::vector<double> acceptance_by_position;
  std::optional<double> server_rate;  // the interval rate by the server's clock
  std::vector<std::string> invalid;   // why it counts for nothing; empty: valid
  std::vector<std::string> unproven;  // what was not shown
  std::vector<std::string>
      not_watched;  // what this machine has no counter for (throttling, swapping, ...); decides nothing
};
struct FigureRules {
  bool cold = true;           // cached_tokens must be there and 0
  bool fixed_length = false;  // finish must be "length"
  bool speculative = false;
};
// Each reason begins with its name and a colon; docs/benchmark.md lists them.
RequestFigures request_figures(const RequestRecord& request, const FigureRules& rules);

struct Statistics {
  size_t count = 0;
  double p10 = 0, median = 0, mean = 0, stdev = 0, min = 0, max = 0;
};
// p10: linear interpolation at (count - 1) * 0.1 of the sorted values; stdev: of a sample (count - 1), 0 for one value.
Statistics statistics(std::vector<double> values);
double median(std::vector<double> values);  // of at least one

}  // namespace stet
