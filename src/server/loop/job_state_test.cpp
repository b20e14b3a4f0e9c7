// The table of stages, and epochs around their wrap.
#include "server/loop/job_state.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"

namespace stet {
namespace {

constexpr JobStage kStages[] = {JobStage::queued, JobStage::prefill,   JobStage::decode,
                                JobStage::done,   JobStage::cancelled, JobStage::failed};

TEST(JobState, OnlyTheStepsOfTheTableArePossible) {
  const std::set<std::pair<std::string, std::string>> allowed = {
      {"queued", "prefill"},   {"queued", "cancelled"},  {"queued", "failed"},  {"prefill", "decode"},
      {"prefill", "done"},     {"prefill", "cancelled"}, {"prefill", "failed"}, {"decode", "done"},
      {"decode", "cancelled"}, {"decode", "failed"},
  };
  for (const JobStage from : kStages)
    for (const JobStage to : kStages)
      EXPECT_EQ(may_follow(from, to), allowed.contains({std::string(stage_name(from)), std::string(stage_name(to))}))
          << stage_name(from) << " -> " << stage_name(to);
}

TEST(JobState, AForbiddenStepIsAnInternalErrorAndChangesNothing) {
  JobState state;
  EXPECT_THROW(state.move(JobStage::decode), Error);
  EXPECT_EQ(state.stage(), JobStage::queued);
  state.move(JobStage::prefill);
  state.move(JobStage::decode);
  state.move(JobStage::done);
  EXPECT_TRUE(state.ended());
  for (const JobStage to : kStages) EXPECT_THROW(state.move(to), Error);
}

TEST(Boundary, AnotherEpochIsRefused) {
  Boundary boundary(1);
  EXPECT_THROW(boundary.require(0), Error);
  EXPECT_THROW(boundary.require(1), Error) << "none is open";
  const uint64_t first = boundary.open();
  EXPECT_EQ(first, 1u);
  EXPECT_THROW(boundary.open(), Error) << "one request at a time";
  boundary.close(first);
  const uint64_t second = boundary.open();
  EXPECT_THROW(boundary.require(first), Error);
  EXPECT_THROW(boundary.close(first), Error);
  boundary.require(second);
}

TEST(Boundary, EpochsWrapPastZero) {
  Boundary boundary(UINT64_MAX - 1);
  for (const uint64_t want : {UINT64_MAX - 1, UINT64_MAX, uint64_t{1}, uint64_t{2}}) {
    const uint64_t epoch = boundary.open();
    EXPECT_EQ(epoch, want);
    EXPECT_THROW(boundary.require(0), Error);
    boundary.close(epoch);
  }
}

}  // namespace
}  // namespace stet
