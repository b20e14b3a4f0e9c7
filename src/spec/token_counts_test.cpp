#include "spec/token_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "base/error.h"

namespace stet {
namespace {

// Outputs that grow, are cut back and grow differently, as drafts that are refused make them: equal to counting afresh.
TEST(TokenCounts, EqualCountingAfresh) {
  constexpr int32_t kVocab = 50;
  std::mt19937 rng(1);
  const auto token = [&rng] { return static_cast<int32_t>(rng() % kVocab); };
  TokenCounts counts(kVocab);
  std::vector<int32_t> prompt = {3, 4, 3}, output;
  for (int step = 0; step < 3000; ++step) {
    if (rng() % 100 == 0) {
      prompt.resize(rng() % 9);
      for (int32_t& id : prompt) id = token();
    }
    if (rng() % 3 == 0) output.resize(output.size() - std::min<size_t>(output.size(), rng() % 6));
    if (rng() % 50 == 0) output.clear();
    for (auto more = rng() % 5; more > 0; --more) output.push_back(token());
    counts.update(prompt, output);
    std::set<int32_t> distinct(prompt.begin(), prompt.end());
    distinct.insert(output.begin(), output.end());
    EXPECT_THAT(counts.distinct(), testing::UnorderedElementsAreArray(distinct)) << "step " << step;
    for (int32_t id = 0; id < kVocab; ++id)
      ASSERT_EQ(counts.in_output(id), std::count(output.begin(), output.end(), id)) << "step " << step;
  }
}

TEST(TokenCounts, RefuseAnIdOutsideTheVocabulary) {
  TokenCounts counts(10);
  const std::vector<int32_t> good = {9}, high = {10}, negative = {-1};
  EXPECT_NO_THROW(counts.update(good, good));
  EXPECT_THROW(counts.update(good, high), Error);
  EXPECT_THROW(counts.update(negative, good), Error);
}

}  // namespace
}  // namespace stet
