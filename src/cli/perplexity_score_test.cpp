#include "cli/perplexity_score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"

namespace stet {
namespace {

TEST(PerplexityScore, WindowsAreCutAsLlamaCppDoes) {
  const Windows w = cut_windows(1300, 512, 1);
  EXPECT_EQ(w.count, 2u);
  EXPECT_EQ(w.first_scored(), 256u);  // the logits there score the token at 257
  EXPECT_EQ(w.scored(), 255u);
  std::vector<int32_t> text(1300);
  std::iota(text.begin(), text.end(), 100);
  const std::vector<int32_t> ids = window_ids(text, w, 1);
  ASSERT_EQ(ids.size(), 512u);
  EXPECT_EQ(ids[0], 1);
  EXPECT_EQ(ids[1], 100 + 513);
  EXPECT_EQ(ids[511], 100 + 1023);
  EXPECT_EQ(window_ids(text, cut_windows(1300, 512, std::nullopt), 1)[0], 100 + 512);
  EXPECT_EQ(cut_windows(1024, 512, 1).count, 2u);
  EXPECT_THROW(cut_windows(1023, 512, 1), Error);
  const Windows odd = cut_windows(18, 9, std::nullopt);
  EXPECT_EQ(odd.first_scored() + odd.scored(), 8u);  // the last position has nothing to score
}

TEST(PerplexityScore, UniformLogits) {
  const std::vector<float> row(1000, 3.5f);
  EXPECT_NEAR(negative_log_likelihood(row, 7), std::log(1000.0), 1e-12);
  EXPECT_EQ(most_likely(row), 0u);
}

TEST(PerplexityScore, LargeLogitsDoNotOverflow) {
  const std::vector<float> row = {3e38f, -3e38f, 3e38f};
  EXPECT_NEAR(negative_log_likelihood(row, 2), std::log(2.0), 1e-9);
}

TEST(PerplexityScore, KlOfKnownDistributions) {
  const std::vector<float> p = {std::log(0.5f), std::log(0.25f), std::log(0.25f)};
  std::vector<float> q = {std::log(0.25f), std::log(0.5f), std::log(0.25f)};
  EXPECT_NEAR(kl_divergence(p, q), 0.25 * std::log(2.0), 1e-6);
  EXPECT_NEAR(kl_divergence(p, p), 0.0, 1e-12);
  for (float& x : q) x += 100.0f;  // the same distribution
  EXPECT_NEAR(kl_divergence(p, q), 0.25 * std::log(2.0), 1e-5);
  EXPECT_NEAR(kl_divergence(q, p), 0.25 * std::log(2.0), 1e-5);
  EXPECT_EQ(most_likely(q), 1u);
}

TEST(PerplexityScore, StandardErrorOfTheMean) {
  Mean m;
  m.add(1.0);
  EXPECT_EQ(m.standard_error(), 0.0);
  m.add(3.0);
  m.add(5.0);
  EXPECT_DOUBLE_EQ(m.mean(), 3.0);
  EXPECT_NEAR(m.standard_error(), std::sqrt(8.0 / 3.0 / 2.0), 1e-12);
}

}  // namespace
}  // namespace stet
