// Starts that other machines disturbed are run again, kept, and not counted.
#include "lab/compare/disturbed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "lab/compare/compare_test_util.h"
#include "lab/compare/verdict.h"
#include "base/strict_json.h"

namespace stet {

std::string compare_results(const Packet& packet);

namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

double rate_of(const Leg& leg, size_t prompt) {
  return (40 + static_cast<double>(prompt)) * (leg.arm == 'B' ? 1.2 : 1.0) * (1 + 0.001 * (leg.start % 3));
}

ComparePlan repeating_plan(uint32_t repeats) {
  ComparePlan plan = suite_plan();
  plan.disturbed_repeats = repeats;
  return plan;
}

// A disturbed start is slow, too.
Packet disturbed_packet(const ComparePlan& plan, const std::string& arm, uint32_t start) {
  Packet packet = packet_of(plan, rate_of);
  repeat_start(packet, arm, start);
  disturb(packet, arm, start);
  for (RequestRecord& r : packet.requests)
    if (r.arm == arm && r.start == start)
      for (size_t i = 1; i < r.chunks.size(); ++i) r.chunks[i].client_ns += static_cast<int64_t>(i) * 10'000'000;
  return packet;
}

TEST(DisturbedStart, IsRunAgainAndDoesNotCount) {
  const ComparePlan plan = repeating_plan(2);
  const CompareVerdict clean = judge_comparison(plan, packet_of(plan, rate_of));
  EXPECT_TRUE(clean.repeated.empty());
  ASSERT_EQ(clean.verdict, "promoted") << ::testing::PrintToString(clean.reasons);
  for (const auto& [arm, start] : {std::pair("A", 0u), std::pair("A", 9u), std::pair("B", 2u)}) {
    const CompareVerdict v = judge_comparison(plan, disturbed_packet(plan, arm, start));
    EXPECT_EQ(v.verdict, "promoted") << ::testing::PrintToString(v.reasons);
    ASSERT_EQ(v.repeated.size(), 1u);
    EXPECT_EQ(v.repeated[0].arm, arm);
    EXPECT_EQ(v.repeated[0].start, start);
    EXPECT_THAT(v.repeated[0].why, HasSubstr("steal: 100 of 1000"));
    EXPECT_EQ(v.series[0].ab.pair_ratios, clean.series[0].ab.pair_ratios);
    EXPECT_EQ(v.series[0].aa.pair_ratios, clean.series[0].aa.pair_ratios);
    EXPECT_EQ(v.a.starts, clean.a.starts);
  }
}

TEST(DisturbedStart, OneThatStaysDisturbedMakesItVoid) {
  const ComparePlan plan = repeating_plan(1);
  Packet packet = disturbed_packet(plan, "B", 1);
  disturb(packet, "B", 2);
  const CompareVerdict v = judge_comparison(plan, packet);
  EXPECT_EQ(v.verdict, "void");
  EXPECT_EQ(v.repeated.size(), 1u);
  EXPECT_THAT(v.reasons, Contains(HasSubstr("steal:")));
  // A start more than the limit allows is none of the plan.
  repeat_start(packet, "B", 2);
  EXPECT_THAT(judge_comparison(plan, packet).reasons, Contains(HasSubstr("starts of the plan were run")));
}

TEST(DisturbedStart, CountsWhereThePlanRepeatsNothing) {
  for (const bool of_before : {true, false}) {
    ComparePlan plan = repeating_plan(0);
    if (of_before) plan.disturbed_repeats.reset();
    Packet packet = packet_of(plan, rate_of);
    disturb(packet, "A", 3);
    EXPECT_EQ(judge_comparison(plan, packet).verdict, "void");
    const Json results = parse_json(compare_results(packet), "results");
    EXPECT_EQ(results.contains("repeated_starts"), !of_before);
  }
}

// One that was not disturbed is never left out, however slow it was.
TEST(DisturbedStart, ASecondStartWithoutAReasonIsRefused) {
  const ComparePlan plan = repeating_plan(2);
  Packet packet = packet_of(plan, rate_of);
  repeat_start(packet, "B", 1);
  const CompareVerdict v = judge_comparison(plan, packet);
  EXPECT_EQ(v.verdict, "void");
  EXPECT_THAT(v.reasons, Contains(HasSubstr("17 of 16 starts of the plan were run")));
}

TEST(DisturbedStart, ItsTokensMustBeEqualAllTheSame) {
  const ComparePlan plan = repeating_plan(2);
  Packet packet = disturbed_packet(plan, "B", 1);
  for (RequestRecord& r : packet.requests)
    if (r.arm == "B" && r.start == 1 && r.step_id == "p3") r.chunks[9].token_ids->at(0) += 1;
  const CompareVerdict v = judge_comparison(plan, packet);
  EXPECT_EQ(v.verdict, "void");
  EXPECT_FALSE(v.equality.faults.empty());
}

TEST(DisturbedStart, ItsCountersDoNotCount) {
  ComparePlan plan = repeating_plan(2);
  plan.witnesses = {{"--replay", "metrics:stet_replays"}};
  Packet packet = disturbed_packet(plan, "A", 9);
  packet.notes = {{"counters", R"({"arm":"A","growth":{"stet_replays":5},"start":9})"},
                  {"counters", R"({"arm":"A","growth":{"stet_replays":0},"start":10})"},
                  {"counters", R"({"arm":"B","growth":{"stet_replays":7},"start":0})"}};
  const CompareVerdict v = judge_comparison(plan, packet);
  EXPECT_EQ(v.witnesses[0].control, 0.0);
  EXPECT_EQ(v.witnesses[0].candidate, 7.0);
}

TEST(DisturbedStart, TheAaPhaseLeavesItOutToo) {
  const ComparePlan plan = repeating_plan(2);
  Packet packet = disturbed_packet(plan, "A", 2);
  std::erase_if(packet.starts, [](const StartRecord& s) { return s.arm == "B" || s.start > 8; });
  std::erase_if(packet.requests, [](const RequestRecord& r) { return r.arm == "B" || r.start > 8; });
  const AaPhase phase = judge_aa(plan, packet);
  EXPECT_TRUE(phase.faults.empty()) << ::testing::PrintToString(phase.faults);
  EXPECT_LT(phase.series.at(0).noise.floor, 0.01);
}

TEST(DisturbedStart, ThePlanSaysHowOften) {
  const ComparePlan plan = repeating_plan(7);
  EXPECT_EQ(parse_plan(plan_json(plan)).disturbed_repeats, 7u);
  EXPECT_FALSE(parse_plan(plan_json(suite_plan())).disturbed_repeats);
  std::string wrong = plan_json(plan);
  wrong.replace(wrong.find("_repeats\": 7") + 11, 1, "-1");
  EXPECT_THROW(parse_plan(wrong), Error);
}

}  // namespace
}  // namespace stet
