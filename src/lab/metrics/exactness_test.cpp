#include "lab/metrics/exactness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/packet/packet_fixture_test.h"

namespace stet {
namespace {

using Ids = std::vector<int32_t>;

std::string difference(const Ids& a, const Ids& b, bool prefix = false) {
  const auto d = first_difference(a, b, prefix);
  return d ? shown(*d) : "";
}

TEST(Exactness, TheFirstDifferenceIsNamed) {
  EXPECT_EQ(difference({1, 2, 3}, {1, 2, 3}), "");
  EXPECT_EQ(difference({}, {}), "");
  EXPECT_EQ(difference({1, 2, 3}, {1, 9, 4}), "position 1: expected 2, found 9");
  EXPECT_EQ(difference({1, 2, 3}, {1, 2}), "position 2: expected 3, found the end");
  EXPECT_EQ(difference({1, 2}, {1, 2, 3}), "position 2: expected the end, found 3");
}

TEST(Exactness, AnAnswerThatItsClientLeftIsAPrefix) {
  EXPECT_EQ(difference({1, 2, 3}, {1, 2}, true), "");
  EXPECT_EQ(difference({1, 2}, {1, 2, 3}, true), "");
  EXPECT_EQ(difference({1, 2, 3}, {1, 4}, true), "position 1: expected 2, found 4");
}

RepeatTest repeat_of(const Packet& p) {
  std::vector<const RequestRecord*> requests;
  for (const RequestRecord& r : p.requests) requests.push_back(&r);
  return repeat_test(p.starts, requests);
}

TEST(RepeatTest, HoldsForEqualFreshStarts) {
  const RepeatTest t = repeat_of(FakeBench().packet());
  EXPECT_TRUE(t.holds());
  EXPECT_EQ(t.steps, 3u);
  EXPECT_EQ(t.equal, 3u);
}

TEST(RepeatTest, OneTokenIsEnoughToFail) {
  Packet p = FakeBench().packet();
  p.requests[4].chunks[17].token_ids = Ids{1};
  const RepeatTest t = repeat_of(p);
  EXPECT_FALSE(t.holds());
  EXPECT_EQ(t.equal, 2u);
  EXPECT_THAT(t.first, testing::HasSubstr("step 'review', start 1: position 17: expected"));
}

TEST(RepeatTest, ProvesNothingWithOneStartOrAnOldProcess) {
  FakeBench bench;
  bench.starts = 1;
  EXPECT_FALSE(repeat_of(bench.packet()).holds());
  Packet p = FakeBench().packet();
  p.starts[1].fresh = false;
  EXPECT_FALSE(repeat_of(p).holds());
  EXPECT_EQ(repeat_of(p).fresh_starts, 1u);
}

TEST(RepeatTest, AMissingStepOrMissingIdsAreNoEquality) {
  Packet p = FakeBench().packet();
  p.requests.pop_back();
  EXPECT_THAT(repeat_of(p).missing, testing::ElementsAre("plan"));
  p = FakeBench().packet();
  for (ChunkEvent& c : p.requests[0].chunks) c.token_ids.reset();
  EXPECT_THAT(repeat_of(p).missing, testing::ElementsAre("letter"));
  EXPECT_FALSE(repeat_of(p).holds());
}

TEST(RepeatTest, AnotherPromptIsAnotherQuestion) {
  Packet p = FakeBench().packet();
  p.requests[3].prompt += " ";
  EXPECT_THAT(repeat_of(p).first, testing::HasSubstr("the prompts differ"));
}

TEST(TokenDigest, IsTheOneThatRunPrints) {
  // printf '\x01\x00\x00\x00\x02\x00\x00\x00' | sha256sum
  EXPECT_EQ(token_digest(Ids{1, 2}), "34fb5c825de7ca4aea6e712f19d439c1da0c92c37b423936c5f618545ca4fa1f");
}

}  // namespace
}  // namespace stet
