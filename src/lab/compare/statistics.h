// Statistics of paired comparisons. Pure functions that use +, -, *, / and comparisons only, so every machine computes
// the same bits; draws come from a counter-based generator, so they depend on the seed and on nothing that was drawn
// before.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace stet {

struct Interval {
  double low = 0, high = 0;
  bool covers = false;  // it reaches the confidence asked for; else it is the whole range, and says no more than that
};

// The middle value, or the mean of the middle two. Throws Error(kInternal) when there are none.
double median_of(std::vector<double> values);

// Linear interpolation at (n-1)p of values in ascending order. 0 <= p <= 1.
double quantile_of(std::span<const double> ordered, double p);

// Two order statistics that enclose the median with at least this confidence, whatever the distribution (binomial
// tails); the whole range, with covers unset, where there are too few values for that (fewer than 6 at 0.95).
Interval median_interval(std::vector<double> values, double confidence);

struct Bootstrap {
  uint64_t seed = 0;
  uint32_t resamples = 10000;
  double confidence = 0.95;
};

// Percentile interval of `statistic` when `n` clusters (prompts) are drawn with replacement. The statistic is told
// which were drawn. covers is unset for fewer than 6 clusters: even the range of so few values misses their median too
// often.
Interval bootstrap_interval(size_t n, const Bootstrap& plan,
                            const std::function<double(std::span<const uint32_t> drawn)>& statistic);

// The ratios of every prompt. A prompt counts once, however often it was measured: its ratio is the median of its
// ratios (of the two of an A-B-B-A round: their mean, in which a drift that is linear in time cancels).
using Clusters = std::vector<std::vector<double>>;
double clustered_median(const Clusters& clusters);
// The bootstrap interval of clustered_median, widened to the order statistics of median_interval where those lie
// farther out: the percentile interval of a median of few values is short (0.91 instead of 0.95 for 13 prompts, by
// simulation), and with both the coverage is what was asked for.
Interval clustered_interval(const Clusters& clusters, const Bootstrap& plan);

// What identical arms showed, as distances from a ratio of 1.
struct Noise {
  double floor = 0;  // the farthest that two starts of the same thing were apart
  double smallest_effect =
      0;  // what a comparison must exceed to be told from it: the floor, or the farther end of the interval
};
// pair_ratios: one for each pair of starts. Throws Error(kInternal) when there are none.
Noise noise_of(std::span<const double> pair_ratios, const Interval& interval);

}  // namespace stet
