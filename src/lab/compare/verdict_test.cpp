#include "lab/compare/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "lab/compare/compare_test_util.h"
#include "lab/packet/judge.h"
#include "base/strict_json.h"

namespace stet {

std::string compare_results(const Packet& packet);

namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Prompts have rates of their own, starts wobble by 0.4 % in a way that repeats, and B is faster by `gain`.
RateOf rates(double gain) {
  return [gain](const Leg& leg, size_t prompt) {
    const double wobble = 1 + 0.002 * (static_cast<double>((leg.start * 2654435761u + leg.arm) % 5) - 2);
    return (40 + static_cast<double>(prompt)) * wobble * (leg.arm == 'B' ? gain : 1.0);
  };
}

CompareVerdict judged(const ComparePlan& plan, double gain) {
  return judge_comparison(plan, packet_of(plan, rates(gain)));
}

TEST(Verdict, AClearGainIsPromoted) {
  const CompareVerdict v = judged(suite_plan(), 1.2);
  EXPECT_EQ(v.verdict, "promoted") << ::testing::PrintToString(v.reasons) << ::testing::PrintToString(v.unproven);
  EXPECT_TRUE(v.equality.proved);
  ASSERT_EQ(v.series.size(), 1u);
  EXPECT_NEAR(v.series[0].ab.ratio, 1.2, 0.01);
  EXPECT_TRUE(v.series[0].ab.interval.covers);
  EXPECT_GT(v.series[0].ab.interval.low, 1.18);
  EXPECT_LT(v.series[0].noise.floor, 0.02);
  EXPECT_EQ(v.series[0].ab.pair_wins, (std::vector<uint32_t>{12, 12, 12, 12}));
  EXPECT_EQ(v.a.proposed, 0u);
  EXPECT_GT(v.b.proposed, 0u);
}

TEST(Verdict, NoGainIsNot) {
  const CompareVerdict v = judged(suite_plan(), 1.0);
  EXPECT_EQ(v.verdict, "not promoted");
  EXPECT_THAT(v.reasons, Contains(HasSubstr("within the smallest effect")));
}

// Identical arms that differ by a start's luck: a gain of that size says nothing.
TEST(Verdict, TheNoiseOfStartsIsAFloor) {
  const auto noisy = [](const Leg& leg, size_t) {
    return leg.aa ? (leg.slot % 2 == 0 ? 50.0 : 53.0) : leg.arm == 'B' ? 52.0 : 50.0;
  };
  const ComparePlan plan = suite_plan();
  const CompareVerdict v = judge_comparison(plan, packet_of(plan, noisy));
  EXPECT_EQ(v.verdict, "not promoted");
  EXPECT_NEAR(v.series[0].noise.floor, 0.06, 0.001);
  EXPECT_GT(v.series[0].ab.interval.low, 1.03);
}

// A drift that is linear in time favours whoever runs later; A-B-B-A cancels it.
TEST(Verdict, ADriftCancels) {
  const ComparePlan plan = suite_plan();
  int leg_number = 0;
  uint32_t last = UINT32_MAX;
  const auto drifting = [&](const Leg& leg, size_t) {
    const uint32_t key = leg.start * 4 + (leg.arm == 'B') * 2 + leg.aa;
    if (key != last) ++leg_number, last = key;
    return 50.0 + 0.1 * leg_number;
  };
  const CompareVerdict v = judge_comparison(plan, packet_of(plan, drifting));
  EXPECT_NEAR(v.series[0].ab.ratio, 1.0, 1e-4);
}

TEST(Verdict, AWitnessThatIsZeroInTheCandidateMakesItVoid) {
  const ComparePlan plan = suite_plan();
  const CompareVerdict v = judge_comparison(plan, packet_of(plan, rates(1.2), 0));
  EXPECT_EQ(v.verdict, "void");
  EXPECT_THAT(v.reasons, Contains(HasSubstr("is 0 in the candidate")));
  EXPECT_THAT(v.series, IsEmpty());
}

TEST(Verdict, AWitnessThatIsNotZeroInTheControlMakesItVoid) {
  const ComparePlan plan = suite_plan();
  Packet packet = packet_of(plan, rates(1.2));
  for (RequestRecord& r : packet.requests)
    if (r.arm == "A" && r.start == 3) r.chunks[5].depth = 2;
  const CompareVerdict v = judge_comparison(plan, packet);
  EXPECT_EQ(v.verdict, "void");
  EXPECT_THAT(v.reasons, Contains(HasSubstr("the control was treated")));
}

TEST(Verdict, AWitnessThatNobodyReportsMakesItVoid) {
  ComparePlan plan = suite_plan();
  plan.witnesses = {{"--replay", "metrics:stet_replays"}};
  EXPECT_THAT(judged(plan, 1.2).reasons, Contains(HasSubstr("is not reported by arm A")));
  Packet packet = packet_of(plan, rates(1.2));
  packet.notes = {{"counters", R"({"arm":"A","start":0,"growth":{"stet_replays":0}})"},
                  {"counters", R"({"arm":"B","start":0,"growth":{"stet_replays":7}})"}};
  EXPECT_EQ(judge_comparison(plan, packet).verdict, "promoted");
}

TEST(Verdict, OtherTokensAreVoidAndHaveNoNumber) {
  const ComparePlan plan = suite_plan();
  Packet packet = packet_of(plan, rates(1.2));
  for (RequestRecord& r : packet.requests)
    if (r.arm == "B" && r.step_id == "p3") r.chunks[9].token_ids->at(0) += 1;
  const CompareVerdict v = judge_comparison(plan, packet);
  EXPECT_EQ(v.verdict, "void");
  EXPECT_THAT(v.reasons, Contains(AllOf(HasSubstr("step 'p3'"), HasSubstr("position 17"))));
  EXPECT_EQ(v.equality.compared - v.equality.equal, 4u);
  const Json results = parse_json(compare_results(packet), "results");
  EXPECT_EQ(results["series"].size(), 0u);
}

TEST(Verdict, AnArmThatDoesNotRepeatItselfIsVoid) {
  const ComparePlan plan = suite_plan();
  Packet packet = packet_of(plan, rates(1.2));
  for (RequestRecord& r : packet.requests)
    if (r.arm == "A" && r.start == 5 && r.step_id == "p0") r.chunks[2].token_ids->at(0) += 1;
  EXPECT_THAT(judge_comparison(plan, packet).reasons, Contains(HasSubstr("arm A does not repeat itself")));
}

TEST(Verdict, SequencesAreComparedWhereThePlanSaysSo) {
  ComparePlan plan = suite_plan();
  plan.b_shown = "serve:--model m.gguf --replay eager";
  plan.witnesses = {{"--replay", "metrics:x"}};
  plan.equal = Equal::sequences;
  Packet packet = packet_of(plan, rates(1.2), 0);
  packet.notes = {{"counters", R"({"arm":"A","growth":{"x":0}})"}, {"counters", R"({"arm":"B","growth":{"x":7}})"}};
  EXPECT_EQ(judge_comparison(plan, packet).verdict, "promoted");
  Packet other = packet_of(plan, rates(1.2), 1);  // the same ids, by other cycles
  other.notes = packet.notes;
  const CompareVerdict v = judge_comparison(plan, other);
  EXPECT_EQ(v.verdict, "void");
  EXPECT_THAT(v.reasons, Contains(HasSubstr("other cycles: cycle 1: 0 of 0 accepted in A, 1 of 1 in B")));
  plan.equal = Equal::ids;
  EXPECT_EQ(judge_comparison(plan, other).verdict, "promoted");
}

TEST(Verdict, EveryLegOfThePlanMustHaveRunInOrder) {
  const ComparePlan plan = suite_plan();
  Packet missing = packet_of(plan, rates(1.2));
  missing.starts.pop_back();
  EXPECT_EQ(judge_comparison(plan, missing).verdict, "void");
  Packet swapped = packet_of(plan, rates(1.2));
  std::swap(swapped.starts[9].client_ns, swapped.starts[8].client_ns);
  EXPECT_THAT(judge_comparison(plan, swapped).reasons, Contains(HasSubstr("against the plan")));
  Packet shorter = packet_of(plan, rates(1.2));
  shorter.requests.erase(shorter.requests.begin() + 30);
  EXPECT_THAT(judge_comparison(plan, shorter).reasons, Contains(HasSubstr("did not answer the 12 steps")));
  EXPECT_EQ(judge_comparison(plan, Packet{}).reasons, (std::vector<std::string>{"nothing was measured"}));
}

TEST(Verdict, InvalidRequestsAreVoidAndCounted) {
  const ComparePlan plan = suite_plan();
  Packet packet = packet_of(plan, rates(1.2));
  packet.requests[7].usage.cached_tokens = 4;
  packet.requests[8].usage.cached_tokens = 4;
  const CompareVerdict v = judge_comparison(plan, packet);
  EXPECT_EQ(v.verdict, "void");
  EXPECT_THAT(v.reasons, Contains(AllOf(HasSubstr("warm cache"), HasSubstr("and 1 more"))));
}

TEST(Verdict, WhatRanAlreadyIsUnproven) {
  const ComparePlan plan = suite_plan();
  Packet packet = packet_of(plan, rates(1.2));
  for (StartRecord& s : packet.starts) s.fresh = s.arm == "A";
  const CompareVerdict v = judge_comparison(plan, packet);
  EXPECT_EQ(v.verdict, "not promoted");
  EXPECT_THAT(v.unproven, Contains(HasSubstr("no fresh process")));
  EXPECT_THAT(v.series, IsEmpty());  // the tokens are not proved either
}

TEST(Verdict, RulesOfTheFile) {
  ComparePlan plan = suite_plan();
  plan.rules = parse_rules(R"({"minimum_ratio": 1.25, "minimum_wins": 13, "lower_start": true, "minimum_figure": 60,
                               "minimum_saving_ms_per_token": 5, "minimum_saving_ms_per_cycle": 1, "maximum_acceptance_drift": 0.001})",
                           "rules");
  const CompareVerdict v = judged(plan, 1.2);
  EXPECT_EQ(v.verdict, "not promoted");
  EXPECT_THAT(v.reasons, Contains(HasSubstr("below the demanded 1.25")));
  EXPECT_THAT(v.reasons, Contains(HasSubstr("wins 12 of 12 prompts in pair 0, and the rules demand 13")));
  EXPECT_THAT(v.reasons, Contains(HasSubstr("does not beat 60")));
  EXPECT_THAT(v.reasons, Contains(HasSubstr("ms a token")));
  EXPECT_THAT(v.reasons, Contains(HasSubstr("acceptance rate moved from 0.000000 to 0.98")));
  EXPECT_THAT(v.reasons, Contains(HasSubstr("ms per target pass")));
  EXPECT_THAT(v.reasons, ::testing::Not(Contains(HasSubstr("is no better than the worst of A"))))
      << "it beats A's, so only the record is missed";
  plan.rules = parse_rules(
      R"({"minimum_ratio": 1.15, "minimum_wins": 12, "lower_start": true, "minimum_figure": 45, "minimum_saving_ms_per_token": 1})",
      "rules");
  EXPECT_EQ(judged(plan, 1.2).verdict, "promoted");
}

TEST(Verdict, OneLosingPairIsEnoughAgainstEveryPair) {
  ComparePlan plan = suite_plan();
  const auto uneven = [](const Leg& leg, size_t p) {
    return rates(leg.arm == 'B' && leg.start == 2 ? 0.99 : 1.3)(leg, p);
  };
  EXPECT_THAT(judge_comparison(plan, packet_of(plan, uneven)).reasons,
              Contains(HasSubstr("B is no better in 1 of 4 pairs")));
  plan.rules.every_pair = false;
  EXPECT_EQ(judge_comparison(plan, packet_of(plan, uneven)).verdict, "promoted");
}

TEST(Verdict, FewPromptsHaveNoInterval) {
  const CompareVerdict v = judged(suite_plan(5), 1.2);
  EXPECT_EQ(v.verdict, "not promoted");
  EXPECT_THAT(v.reasons, Contains(HasSubstr("too few prompts")));
}

TEST(Verdict, ResultsAreDeterministicAndShowWhatPreceded) {
  const ComparePlan plan = suite_plan();
  Packet packet = packet_of(plan, rates(1.2));
  packet.notes = {{"ledger", R"({"attempt":9,"before":{"all":8,"same_subject":3}})"}};
  const std::string once = compare_results(packet);
  EXPECT_EQ(once, compare_results(packet));
  const Json results = parse_json(once, "results");
  EXPECT_EQ(results["ledger"]["before"]["same_subject"], 3);
  EXPECT_EQ(results["evidence"], "endpoint");
  EXPECT_EQ(results["frozen"], "at the start");
  EXPECT_EQ(results["series"][0]["ab"]["prompts"].size(), 12u);
}

Packet aa_only(const ComparePlan& plan, Packet packet) {
  const uint32_t starts = plan.aa_rounds * 4;
  std::erase_if(packet.starts, [&](const StartRecord& s) { return s.arm == "B" || s.start >= starts; });
  std::erase_if(packet.requests, [&](const RequestRecord& r) { return r.arm == "B" || r.start >= starts; });
  std::erase_if(packet.measures, [&](const MeasureRecord& m) { return m.arm == "B" || m.start >= starts; });
  return packet;
}

TEST(AaPhase, StatesTheFloorBeforeAnythingIsTreated) {
  const ComparePlan plan = suite_plan();
  const AaPhase phase = judge_aa(plan, aa_only(plan, packet_of(plan, rates(1.2))));
  EXPECT_THAT(phase.faults, IsEmpty());
  ASSERT_EQ(phase.series.size(), 1u);
  EXPECT_EQ(phase.series[0].noise.floor, judged(plan, 1.2).series[0].noise.floor);
}

TEST(AaPhase, SaysWhyNothingCanBeCompared) {
  const ComparePlan plan = suite_plan();
  Packet packet = aa_only(plan, packet_of(plan, rates(1.2)));
  packet.requests[3].usage.cached_tokens = 1;
  EXPECT_THAT(judge_aa(plan, packet).faults, Contains(HasSubstr("warm cache")));
  packet = aa_only(plan, packet_of(plan, rates(1.2)));
  packet.requests[13].chunks[4].token_ids->at(0) += 1;
  EXPECT_THAT(judge_aa(plan, packet).faults, Contains(HasSubstr("does not repeat itself")));
  EXPECT_THAT(judge_aa(plan, packet).series, IsEmpty());
}

ComparePlan program_plan() {
  ComparePlan plan = suite_plan(0);
  plan.a_kind = plan.b_kind = ArmKind::measure;
  plan.a_shown = "measure:python bench_other.py";
  plan.b_shown = "measure:stet-bench m.gguf";
  plan.suite_id = plan.suite_sha256 = "";
  plan.points = {"context=100", "context=2048"};
  plan.figures = {};
  plan.witnesses = {};
  plan.equal = Equal::nothing;
  plan.aa_rounds = plan.rounds = 3;
  return plan;
}

Packet program_packet(const ComparePlan& plan, double gain) {
  Packet packet;
  packet.plan_json = plan_json(plan);
  int64_t now = 0;
  for (const Leg& leg : legs_of(plan)) {
    const std::string arm(1, leg.arm);
    packet.starts.push_back({arm, leg.start, true, "{}", ++now});
    const double decode = 50 + 0.1 * (leg.start % 3) + (leg.arm == 'B' ? 50 * (gain - 1) : 0);
    MeasureRecord m;
    m.arm = arm;
    m.start = leg.start;
    m.point = plan.points[leg.point];
    m.figures_json = fmt::format(R"({{"decode_tokens_per_second":{},"load_seconds":{},"threads":2{}}})", decode,
                                 1 / decode, leg.arm == 'A' ? R"(,"of_a_per_second":1)" : "");
    m.begin_ns = ++now;
    m.end_ns = ++now;
    packet.measures.push_back(m);
  }
  return packet;
}

TEST(Verdict, ProgramsAreJudgedByTheFiguresThatBothPrint) {
  const ComparePlan plan = program_plan();
  const CompareVerdict v = judge_comparison(plan, program_packet(plan, 1.3));
  EXPECT_EQ(v.verdict, "promoted") << ::testing::PrintToString(v.reasons);
  ASSERT_EQ(v.series.size(), 4u);
  EXPECT_EQ(v.series[0].figure.name, "decode_tokens_per_second");
  EXPECT_EQ(v.series[1].figure.name, "load_seconds");
  EXPECT_GT(v.series[1].ab.ratio, 1.2);  // lower is better, and the ratio says better
  EXPECT_EQ(v.series[2].point, "context=2048");
  EXPECT_TRUE(v.series[0].ab.interval.covers);  // six pairs
  EXPECT_EQ(parse_json(compare_results(program_packet(plan, 1.3)), "r")["evidence"], "component");
}

TEST(Verdict, TheSameProgramTwiceNeedsAWitness) {
  ComparePlan plan = program_plan();
  plan.b_shown = "measure:python bench_other.py --fast";
  EXPECT_THAT(judge_comparison(plan, program_packet(plan, 1.3)).unproven, Contains(HasSubstr("no witness")));
  plan.b_shown = plan.a_shown;  // A/A: nothing differs
  EXPECT_THAT(judge_comparison(plan, program_packet(plan, 1.3)).unproven, IsEmpty());
}

TEST(Verdict, AMissingFigureIsVoid) {
  ComparePlan plan = program_plan();
  plan.figures = {{"of_a_per_second", true}};
  EXPECT_THAT(judge_comparison(plan, program_packet(plan, 1.3)).reasons,
              Contains(HasSubstr("of arm B has no of_a_per_second above 0")));
}

}  // namespace
}  // namespace stet
