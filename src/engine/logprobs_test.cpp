#include "engine/logprobs.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stet {
namespace {

TEST(Logprobs, AreTheLogarithmOfTheSoftmax) {
  const std::vector<float> logits{1.0f, 3.0f, -2.0f, 3.0f, 0.5f};
  const PositionLogprobs l = position_logprobs(logits, 4, 2);
  const double sum = std::exp(1.0) + 2 * std::exp(3.0) + std::exp(-2.0) + std::exp(0.5);
  EXPECT_EQ(l.chosen.token, 4);
  EXPECT_NEAR(l.chosen.logprob, 0.5 - std::log(sum), 1e-6);
  ASSERT_EQ(l.top.size(), 2u);
  EXPECT_EQ(l.top[0].token, 1) << "ties go to the lower id";
  EXPECT_EQ(l.top[1].token, 3);
  EXPECT_NEAR(l.top[1].logprob, 3.0 - std::log(sum), 1e-6);
}

TEST(Logprobs, ManyMoreThanTheVocabularyHasAreAllOfIt) {
  const std::vector<float> logits{1000.0f, -1000.0f};
  const PositionLogprobs l = position_logprobs(logits, 0, 20);
  EXPECT_EQ(l.top.size(), 2u);
  EXPECT_EQ(l.top[0].logprob, 0.0f);
  EXPECT_EQ(l.top[1].logprob, -2000.0f);
  EXPECT_TRUE(position_logprobs(logits, 0, 0).top.empty());
}

}  // namespace
}  // namespace stet
