#include "lab/compare/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/philox.h"

namespace stet {
namespace {

constexpr size_t kFewestClusters =
    6;  // 1 - 2 / 2^6 = 0.969: the fewest values whose range covers their median with 0.95

// The i-th draw of a resample, in [0, n): the high half of a 32-bit draw times n, so its bias is below n / 2^32.
class ResampleDraws {
 public:
  ResampleDraws(uint64_t seed, uint32_t resample)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}, resample_(resample) {}
  uint32_t below(uint32_t i, uint32_t n) {
    if (i / 4 != block_ || !filled_) {
      block_ = i / 4;
      filled_ = true;
      words_ = philox4x32({{block_, resample_, 0, 0}}, key_[0], key_[1]);
    }
    return static_cast<uint32_t>((uint64_t{words_.word[i % 4]} * n) >> 32);
  }

 private:
  std::array<uint32_t, 2> key_;
  uint32_t resample_, block_ = 0;
  bool filled_ = false;
  Philox words_{};
};

double middle(std::span<const double> ordered) {
  const size_t n = ordered.size();
  return n % 2 == 1 ? ordered[n / 2] : (ordered[n / 2 - 1] + ordered[n / 2]) / 2;
}

}  // namespace

double median_of(std::vector<double> values) {
  STET_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  return middle(values);
}

double quantile_of(std::span<const double> ordered, double p) {
  STET_CHECK(!ordered.empty() && p >= 0 && p <= 1);
  const double at = static_cast<double>(ordered.size() - 1) * p;
  const size_t below = std::min(static_cast<size_t>(at), ordered.size() - 1);
  const size_t above = std::min(below + 1, ordered.size() - 1);
  return ordered[below] + (at - static_cast<double>(below)) * (ordered[above] - ordered[below]);
}

Interval median_interval(std::vector<double> values, double confidence) {
  STET_CHECK(!values.empty() && confidence > 0 && confidence < 1);
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  // P(the median lies below the (k+1)-th value) = P(at most k of n are below it) = sum of C(n, i) / 2^n for i <= k.
  double term = 1.0, tail = 0.0;
  for (size_t i = 0; i < n; ++i) term /= 2.0;
  size_t rank = 0;
  for (size_t k = 0; k < n / 2; ++k) {
    tail += term;
    if (2.0 * tail > 1.0 - confidence) break;
    rank = k + 1;
    term = term * static_cast<double>(n - k) / static_cast<double>(k + 1);
  }
  if (rank == 0) return {values.front(), values.back(), false};
  return {values[rank - 1], values[n - rank], true};
}

Interval bootstrap_interval(size_t n, const Bootstrap& plan,
                            const std::function<double(std::span<const uint32_t>)>& statistic) {
  STET_CHECK(n > 0 && plan.resamples > 0 && plan.confidence > 0 && plan.confidence < 1);
  std::vector<uint32_t> drawn(n);
  std::vector<double> values(plan.resamples);
  for (uint32_t r = 0; r < plan.resamples; ++r) {
    ResampleDraws draws(plan.seed, r);
    for (uint32_t i = 0; i < n; ++i) drawn[i] = draws.below(i, static_cast<uint32_t>(n));
    values[r] = statistic(drawn);
  }
  std::sort(values.begin(), values.end());
  const double outside = (1.0 - plan.confidence) / 2;
  return {quantile_of(values, outside), quantile_of(values, 1.0 - outside), n >= kFewestClusters};
}

double clustered_median(const Clusters& clusters) {
  std::vector<double> medians;
  for (const auto& ratios : clusters) medians.push_back(median_of(ratios));
  return median_of(std::move(medians));
}

Interval clustered_interval(const Clusters& clusters, const Bootstrap& plan) {
  std::vector<double> medians;
  for (const auto& ratios : clusters) medians.push_back(median_of(ratios));
  std::vector<double> sample(medians.size());
  const Interval drawn_again = bootstrap_interval(medians.size(), plan, [&](std::span<const uint32_t> drawn) {
    for (size_t i = 0; i < drawn.size(); ++i) sample[i] = medians[drawn[i]];
    std::sort(sample.begin(), sample.end());
    return middle(sample);
  });
  const Interval order = median_interval(std::move(medians), plan.confidence);
  return {std::min(drawn_again.low, order.low), std::max(drawn_again.high, order.high),
          drawn_again.covers && order.covers};
}

Noise noise_of(std::span<const double> pair_ratios, const Interval& interval) {
  STET_CHECK(!pair_ratios.empty());
  Noise noise;
  for (double ratio : pair_ratios) noise.floor = std::max(noise.floor, std::abs(ratio - 1.0));
  noise.smallest_effect = std::max({noise.floor, std::abs(interval.low - 1.0), std::abs(interval.high - 1.0)});
  return noise;
}

}  // namespace stet
