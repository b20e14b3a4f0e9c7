#include "lab/metrics/repetition.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "lab/packet/packet_fixture_test.h"

namespace stet {
namespace {

using Ids = std::vector<int32_t>;

// Ids that never repeat, from `first`.
Ids fresh(size_t n, int32_t first = 1000) {
  Ids ids;
  for (size_t i = 0; i < n; ++i) ids.push_back(first + static_cast<int32_t>(i));
  return ids;
}

Ids cycle(size_t period, size_t tokens) {
  Ids ids;
  for (size_t i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>(i % period));
  return ids;
}

Ids operator+(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(RepetitionLoop, TheStretchIsExact) {
  const auto loop = repetition_loop(fresh(10) + cycle(7, 70) + fresh(5, 5000));
  ASSERT_TRUE(loop);
  EXPECT_EQ(loop->begin, 10u);
  EXPECT_EQ(loop->tokens, 70u);
  EXPECT_EQ(loop->period, 7u);
  EXPECT_EQ(shown(*loop), "tokens 10 to 79 repeat a cycle of 7");
}

TEST(RepetitionLoop, LengthAndRoundsBothCount) {
  EXPECT_FALSE(repetition_loop(cycle(1, 63)));
  EXPECT_TRUE(repetition_loop(cycle(1, 64)));
  EXPECT_FALSE(repetition_loop(fresh(300) + cycle(128, 383)));
  EXPECT_TRUE(repetition_loop(fresh(300) + cycle(128, 384)));
  EXPECT_EQ(repetition_loop(cycle(6, 90))->period, 6u) << "not 12, of which it is a cycle too";
  EXPECT_FALSE(repetition_loop({}));
  EXPECT_FALSE(repetition_loop(Ids{1}));
}

TEST(RepetitionLoop, ALoopInTheMiddleCounts) {
  EXPECT_TRUE(repetition_loop(fresh(100) + cycle(3, 80) + fresh(100, 9000)));
}

TEST(RepetitionLoop, SentencesThatDifferInAWordCount) {
  Ids ids;
  for (int32_t i = 0; i < 20; ++i) ids = ids + fresh(19) + Ids{5000 + i};  // 19 words and a new number, twenty times
  const auto loop = repetition_loop(ids);
  ASSERT_TRUE(loop);
  EXPECT_EQ(loop->period, 0u);
  EXPECT_EQ(shown(*loop), "of the 8-token runs in tokens 0 to 255, 108 of 249 are distinct");
  EXPECT_FALSE(repetition_loop(std::span(ids).first(127))) << "too short to say";
}

// An independent count of the second rule's windows.
TEST(RepetitionLoop, TheWindowSlides) {
  Ids ids = fresh(300);
  for (int32_t i = 0; i < 15; ++i) ids = ids + fresh(19, 20) + Ids{7000 + i};
  const auto loop = repetition_loop(ids);
  ASSERT_TRUE(loop);
  const auto distinct_from = [&](size_t begin) {
    std::set<Ids> runs;
    for (size_t i = begin; i + 8 <= begin + 256; ++i)
      runs.insert(Ids(ids.begin() + static_cast<long>(i), ids.begin() + static_cast<long>(i) + 8));
    return runs.size();
  };
  EXPECT_EQ(distinct_from(loop->begin), loop->distinct);
  EXPECT_LT(2 * distinct_from(loop->begin), 249u);
  EXPECT_GE(2 * distinct_from(loop->begin - 1), 249u) << "the first such window";
}

TEST(RepetitionLoop, RealAnswersOfASmallModel) {
  const Json data = Json::parse(read_text("tests/golden/lab/answers.json"));
  size_t loops = 0;
  for (const Json& answer : data["answers"]) {
    const auto loop = repetition_loop(answer["token_ids"].get<Ids>());
    EXPECT_EQ(loop.has_value(), answer["loop"].get<bool>())
        << answer["name"] << ": " << (loop ? shown(*loop) : "no loop");
    loops += loop.has_value() ? 1 : 0;
  }
  EXPECT_EQ(loops, 9u);
  EXPECT_EQ(data["answers"].size(), 18u);
}

}  // namespace
}  // namespace stet
