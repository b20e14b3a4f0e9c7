// A comparison that runs: programs that print a constant, on a machine whose counters are made up.
#include "lab/compare/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "lab/packet/verify.h"

namespace stet {
namespace {

using ::testing::HasSubstr;

class CompareRunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "stet-runner-" + std::to_string(::getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    run_.a = parse_arm(R"(measure:/bin/sh -c 'echo "{\"x_per_second\": 100}"')");
    run_.b = parse_arm(R"(measure:/bin/echo '{"x_per_second": 120}')");
    run_.packet = folder_ + "/packet";
    ComparePlan plan;
    plan.created = "2026-11-30T00:00:00Z";
    plan.a_kind = plan.b_kind = ArmKind::measure;
    plan.a_shown = run_.a.shown;
    plan.b_shown = run_.b.shown;
    plan.points = {""};
    plan.aa_rounds = plan.rounds = 1;
    plan.disturbed_repeats = 2;
    run_.plan_json = plan_json(plan);
    run_.plan = parse_plan(run_.plan_json);
    run_.sample = [this] { return sample(); };
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Before and after every start; the disturbed ones lose a tenth in between.
  SystemSample sample() {
    const uint32_t start = samples_ / 2;
    if (samples_++ % 2 == 1 && disturbed_.count(start) > 0) steal_ += 100;
    SystemSample s;
    s.client_ns = monotonic_ns();
    s.suspended_ns = 0;
    s.cpu_ticks = 1000 * samples_;
    s.steal_ticks = steal_;
    s.swapped_pages = s.throttle_events = 0;
    return s;
  }

  CompareOutcome run() {
    Ledger ledger(folder_ + "/ledger.sqlite");
    AttemptPlan plan;
    plan.kind = "compare";
    plan.subject_sha256 = subject_sha256(run_.plan);
    plan.plan_sha256 = sha256_hex(run_.plan_json.data(), run_.plan_json.size());
    Attempt attempt = ledger.begin(plan);
    return run_comparison(run_, attempt);
  }

  std::string folder_;
  CompareRun run_;
  std::set<uint32_t> disturbed_;
  uint32_t samples_ = 0;
  uint64_t steal_ = 0;
};

TEST_F(CompareRunnerTest, DisturbedStartsAreRunAgainAndKept) {
  disturbed_ = {1, 7, 8};  // the second A, then the second B twice
  const CompareOutcome outcome = run();
  EXPECT_NE(outcome.verdict.verdict, "void") << ::testing::PrintToString(outcome.verdict.reasons);
  ASSERT_EQ(outcome.verdict.repeated.size(), 3u);
  EXPECT_EQ(outcome.verdict.repeated[0].arm, "A");
  EXPECT_EQ(outcome.verdict.repeated[0].start, 1u);
  EXPECT_EQ(outcome.verdict.repeated[2].arm, "B");
  EXPECT_EQ(outcome.verdict.repeated[2].start, 2u);
  EXPECT_EQ(outcome.verdict.series.at(0).ab.pair_ratios, (std::vector<double>{1.2, 1.2}));
  // What anybody recomputes from the events is the same.
  const VerifyReport report = verify_packet(run_.packet, "");
  EXPECT_EQ(report.mismatch, "");
  EXPECT_EQ(report.packet.starts.size(), 8u + 3);
  EXPECT_THAT(report.packet.results_json, HasSubstr("\"repeated_starts\""));
}

TEST_F(CompareRunnerTest, OneThatStaysDisturbedEndsTheAaPhase) {
  disturbed_ = {2, 3, 4};
  try {
    run();
    FAIL() << "not refused";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInput);
    EXPECT_THAT(e.what(), HasSubstr("steal: 100 of 1000"));
  }
  EXPECT_EQ(samples_, 2u * 6);
}

}  // namespace
}  // namespace stet
