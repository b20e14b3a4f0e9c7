#include "lab/compare/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"

namespace stet {
namespace {

std::vector<double> ascending(size_t n) {
  std::vector<double> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<double>(i + 1);
  return v;
}

TEST(Median, OddEvenAndUnsorted) {
  EXPECT_EQ(median_of({3, 1, 2}), 2);
  EXPECT_EQ(median_of({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median_of({7}), 7);
  EXPECT_THROW(median_of({}), Error);
}

TEST(Quantile, InterpolatesAtNMinusOneTimesP) {
  const std::vector<double> v = {10, 20, 30, 40, 50, 60};
  EXPECT_EQ(quantile_of(v, 0), 10);
  EXPECT_EQ(quantile_of(v, 1), 60);
  EXPECT_DOUBLE_EQ(quantile_of(v, 0.1), 15);  // numpy.percentile(v, 10) = 15.0
  EXPECT_DOUBLE_EQ(quantile_of(v, 0.95), 57.5);
}

// The ranks of the 95 % interval for a median, as tables of the sign test have them.
TEST(MedianInterval, RanksOfTheTables) {
  struct Case {
    size_t n, low, high;
  };
  for (const Case& c : {Case{6, 1, 6},
                        {8, 1, 8},
                        {9, 2, 8},
                        {10, 2, 9},
                        {12, 3, 10},
                        {15, 4, 12},
                        {20, 6, 15},
                        {25, 8, 18},
                        {50, 18, 33},
                        {100, 40, 61}}) {
    const Interval i = median_interval(ascending(c.n), 0.95);
    EXPECT_TRUE(i.covers) << c.n;
    EXPECT_EQ(i.low, static_cast<double>(c.low)) << c.n;
    EXPECT_EQ(i.high, static_cast<double>(c.high)) << c.n;
  }
}

TEST(MedianInterval, TooFewValuesAreARange) {
  for (size_t n = 1; n < 6; ++n) {
    const Interval i = median_interval(ascending(n), 0.95);
    EXPECT_FALSE(i.covers);
    EXPECT_EQ(i.low, 1);
    EXPECT_EQ(i.high, static_cast<double>(n));
  }
  EXPECT_TRUE(median_interval(ascending(5), 0.9).covers);  // 1 - 2/32 = 0.9375
}

TEST(MedianInterval, CoversTheMedianOfASkewedDistribution) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> draw(0, 1);  // median 1
  constexpr int kRuns = 4000;
  int covered = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> v(12);
    for (double& x : v) x = draw(random);
    const Interval i = median_interval(v, 0.95);
    covered += i.low <= 1 && 1 <= i.high;
  }
  // Exactly 1 - 2 (1 + 12 + 66) / 4096 = 0.9614; four standard errors of 4000 runs are 0.0122.
  EXPECT_NEAR(covered / static_cast<double>(kRuns), 0.9614, 0.0122);
}

TEST(Bootstrap, DependsOnTheSeedAlone) {
  const Clusters clusters = {{1.0, 1.1}, {1.2}, {0.9, 1.0}, {1.3}, {1.05}, {1.15}, {0.95}};
  const Interval a = clustered_interval(clusters, {.seed = 7}), b = clustered_interval(clusters, {.seed = 7});
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
  EXPECT_TRUE(a.covers);
  const auto mean_drawn = [](std::span<const uint32_t> drawn) {
    double sum = 0;
    for (uint32_t i : drawn) sum += i * i;
    return sum;
  };
  EXPECT_NE(bootstrap_interval(50, {.seed = 1}, mean_drawn).low, bootstrap_interval(50, {.seed = 2}, mean_drawn).low);
}

// Any change of the generator or of the order of draws would change published verdicts: these are frozen.
TEST(Bootstrap, FirstDrawsAreFrozen) {
  std::vector<uint32_t> first;
  bootstrap_interval(10, {.seed = 20261130, .resamples = 1}, [&](std::span<const uint32_t> drawn) {
    first.assign(drawn.begin(), drawn.end());
    return 0.0;
  });
  EXPECT_EQ(first, (std::vector<uint32_t>{7, 8, 5, 5, 1, 5, 5, 3, 9, 8}));
}

TEST(Bootstrap, DrawsAreUniform) {
  std::vector<uint64_t> count(13);
  bootstrap_interval(13, {.seed = 3, .resamples = 20000}, [&](std::span<const uint32_t> drawn) {
    for (uint32_t i : drawn) ++count[i];
    return 0.0;
  });
  double chi = 0;
  for (uint64_t c : count) chi += (static_cast<double>(c) - 20000) * (static_cast<double>(c) - 20000) / 20000;
  EXPECT_LT(chi, 32.9);  // 0.999 quantile of chi-square with 12 degrees of freedom
}

// The standard error of a mean is known: the interval of a bootstrapped mean must be as wide as that.
TEST(Bootstrap, AMeanHasTheKnownWidth) {
  const std::vector<double> v = ascending(100);  // population variance (100^2 - 1) / 12 = 833.25
  const Interval i = bootstrap_interval(100, {.seed = 5, .resamples = 20000}, [&](std::span<const uint32_t> drawn) {
    double sum = 0;
    for (uint32_t k : drawn) sum += v[k];
    return sum / 100;
  });
  const double half = 1.959964 * std::sqrt(833.25 / 100);
  EXPECT_NEAR(i.low, 50.5 - half, 0.15);
  EXPECT_NEAR(i.high, 50.5 + half, 0.15);
}

TEST(Bootstrap, APromptCountsOnceHoweverOftenItWasMeasured) {
  Clusters clusters(8, std::vector<double>{1.0});
  clusters[0] = std::vector<double>(1000, 5.0);
  EXPECT_EQ(clustered_median(clusters), 1.0);
  EXPECT_EQ(clustered_interval(clusters, {.seed = 1}).low, 1.0);
}

TEST(Bootstrap, FewPromptsClaimNothing) {
  EXPECT_FALSE(clustered_interval({{1.2}, {1.3}, {1.25}, {1.4}, {1.1}}, {.seed = 1}).covers);
}

double normal(std::mt19937_64& random, double sd) { return std::normal_distribution<double>(0, sd)(random); }

Interval bootstrap_alone(const Clusters& clusters, const Bootstrap& plan) {
  return bootstrap_interval(clusters.size(), plan, [&](std::span<const uint32_t> drawn) {
    Clusters sample;
    for (uint32_t i : drawn) sample.push_back(clusters[i]);
    return clustered_median(sample);
  });
}

// Prompts differ in how much they gain, and each of their two ratios carries noise: the interval must cover the median
// gain.
double coverage(size_t prompts, int runs, Interval (*interval)(const Clusters&, const Bootstrap&)) {
  std::mt19937_64 random(prompts);
  int covered = 0;
  for (int run = 0; run < runs; ++run) {
    Clusters clusters(prompts);
    for (auto& ratios : clusters) {
      const double gain = 1.2 + normal(random, 0.1);
      ratios = {gain + normal(random, 0.02), gain + normal(random, 0.02)};
    }
    const Interval i = interval(clusters, {.seed = static_cast<uint64_t>(run), .resamples = 400});
    covered += i.low <= 1.2 && 1.2 <= i.high;
  }
  return covered / static_cast<double>(runs);
}

// The order statistics alone cover at least 0.95 (exactly 0.9614 for 12, 0.9775 for 13, 0.9512 for 49 values); three
// standard errors of 1000 runs at 0.95 are 0.021. The bootstrap alone falls short, so this test can fail.
TEST(Bootstrap, CoversTheMedianRatio) {
  EXPECT_GT(coverage(12, 1000, clustered_interval), 0.93);
  EXPECT_GT(coverage(13, 1000, clustered_interval), 0.93);
  EXPECT_GT(coverage(49, 500, clustered_interval), 0.92);
  EXPECT_LT(coverage(13, 1000, bootstrap_alone), 0.93);
}

TEST(Noise, IsTheFarthestThatIdenticalArmsGot) {
  const std::vector<double> pairs = {1.01, 0.97, 1.02};
  const Noise n = noise_of(pairs, {0.99, 1.05, true});
  EXPECT_DOUBLE_EQ(n.floor, 1 - 0.97);
  EXPECT_DOUBLE_EQ(n.smallest_effect, 1.05 - 1);
  EXPECT_DOUBLE_EQ(noise_of(pairs, {0.99, 1.01, true}).smallest_effect, 1 - 0.97);
}

struct SimulatedPhase {
  std::vector<double> pairs;
  Clusters clusters;
};

// Two rounds of A-B-B-A: every start is faster or slower as a whole, and every request has noise of its own.
SimulatedPhase simulate(std::mt19937_64& random, size_t prompts, double effect, double start_sd, double request_sd) {
  SimulatedPhase phase;
  phase.clusters.resize(prompts);
  for (int pair = 0; pair < 4; ++pair) {
    const double start = effect * (1 + normal(random, start_sd)) / (1 + normal(random, start_sd));
    std::vector<double> ratios;
    for (auto& cluster : phase.clusters) {
      ratios.push_back(start * (1 + normal(random, request_sd)));
      cluster.push_back(ratios.back());
    }
    phase.pairs.push_back(median_of(ratios));
  }
  return phase;
}

double promoted_share(double effect, int runs) {
  std::mt19937_64 random(11);
  int promoted = 0;
  for (int run = 0; run < runs; ++run) {
    const Bootstrap plan{.seed = static_cast<uint64_t>(run), .resamples = 300};
    const SimulatedPhase aa = simulate(random, 12, 1.0, 0.02, 0.01), ab = simulate(random, 12, effect, 0.02, 0.01);
    const Noise noise = noise_of(aa.pairs, clustered_interval(aa.clusters, plan));
    const Interval interval = clustered_interval(ab.clusters, plan);
    promoted += interval.low > 1 && clustered_median(ab.clusters) - 1 > noise.smallest_effect;
  }
  return promoted / static_cast<double>(runs);
}

// A start's own luck is shared by all its prompts, so the bootstrap over prompts does not see it: the floor must.
TEST(Noise, KeepsLuckyStartsFromBeingPromoted) {
  EXPECT_LT(promoted_share(1.0, 1500), 0.05);
  EXPECT_GT(promoted_share(1.15, 300), 0.95);
}

}  // namespace
}  // namespace stet
