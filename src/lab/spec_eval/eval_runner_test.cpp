#include "lab/spec_eval/eval_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "lab/packet/packet_fixture_test.h"
#include "lab/packet/verify.h"
#include "lab/spec_eval/eval_test_util.h"

namespace stet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Answers as its arm does, and keeps what it was told.
class FakeArm : public Arm {
 public:
  FakeArm(EvalArm arm, std::string identity, std::vector<std::string>& told)
      : arm_(arm), identity_(std::move(identity)), told_(told) {}
  bool fresh() const override { return true; }
  const std::string& identity_json() const override { return identity_; }
  RequestRecord ask(const PlannedRequest& request) override {
    told_.push_back(planned_request_json(request));
    now_ += 10'000'000'000;
    return fake_answer(request, fake_speed(arm_), false, now_);
  }

 private:
  EvalArm arm_;
  std::string identity_;
  std::vector<std::string>& told_;
  int64_t now_ = 1'000'000'000;
};

class EvalRunnerTest : public PacketFolderTest {
 protected:
  EvalRunnerTest() : ledger_(path("ledger.sqlite")) {
    run_.manifest = fake_manifest();
    run_.manifest.contract = small_contract();
    run_.manifest.scale = 0.1;
    run_.manifest_json = manifest_json(run_.manifest);
    run_.count = four_bytes_a_token;
    run_.packet = path("packet");
    run_.open = [this](EvalArm arm) {
      opened_.push_back(arm);
      Json identity = Json::parse(fake_identity(arm));
      if (opened_.size() > changes_after_) identity["build_id"] = "b2";
      return std::make_unique<FakeArm>(arm, identity.dump(), told_);
    };
  }

  Attempt begin() {
    return ledger_.begin({.kind = "spec-eval",
                          .label = "test",
                          .idea = "",
                          .cites = {},
                          .subject_sha256 = eval_subject_sha256(run_.manifest),
                          .plan_sha256 = sha256_hex(run_.manifest_json.data(), run_.manifest_json.size()),
                          .authority = Authority::until_treatment,
                          .packet = run_.packet});
  }

  std::string refusal() {
    Attempt attempt = begin();
    try {
      run_evaluation(run_, ledger_, attempt);
    } catch (const Error& e) {
      attempt.fail(e.what());
      return e.what();
    }
    return "";
  }

  Ledger ledger_;
  EvalRun run_;
  std::vector<EvalArm> opened_;
  std::vector<std::string> told_;
  size_t changes_after_ = 1000;
};

TEST_F(EvalRunnerTest, WritesAPacketThatVerifies) {
  Attempt attempt = begin();
  const EvalOutcome outcome = run_evaluation(run_, ledger_, attempt);
  attempt.finish(ledger_outcome(run_.manifest, outcome));
  EXPECT_EQ(outcome.verdict.verdict, "screening") << ::testing::PrintToString(outcome.verdict.reasons);
  const VerifyReport report = verify_packet(run_.packet);
  EXPECT_EQ(report.mismatch, "");
  EXPECT_EQ(report.kind, "spec-eval");
  EXPECT_EQ(report.packet.plan_json, run_.manifest_json) << "the plan is the manifest, byte by byte";
  EXPECT_EQ(ledger_.attempt(1).measurement, "screening");
  using enum EvalArm;
  EXPECT_THAT(opened_, ElementsAre(target, current, candidate, target, current, candidate, candidate, current, target));
}

TEST_F(EvalRunnerTest, NobodyIsToldWhichRequestItIs) {
  Attempt attempt = begin();
  run_evaluation(run_, ledger_, attempt);
  ASSERT_FALSE(told_.empty());
  for (const std::string& line : told_) {
    const Json json = Json::parse(line);
    EXPECT_TRUE(is_request_id(json["step"].get<std::string>())) << line;
    EXPECT_EQ(json["class"], "request");
    EXPECT_EQ(json["cold"], true);
  }
}

TEST_F(EvalRunnerTest, AManifestIsUsedUpByItsRun) {
  EXPECT_EQ(refusal(), "");
  EXPECT_THROW(begin(), Error) << "what it found stands";
}

TEST_F(EvalRunnerTest, AChangeBeforeThePromptsSpendsNothing) {
  changes_after_ = 2;
  EXPECT_THAT(refusal(), HasSubstr("the candidate arm is not what was frozen: build_id was b1 and is b2; nothing"));
  EXPECT_EQ(ledger_.attempt(1).infrastructure, "failed_before_treatment");
  EXPECT_TRUE(told_.empty());
  EXPECT_FALSE(std::filesystem::exists(path("packet.partial")));
  changes_after_ = 1000;
  opened_.clear();
  EXPECT_EQ(refusal(), "") << "the candidate that was frozen may run";
}

TEST_F(EvalRunnerTest, AChangeBehindThemSpendsThePack) {
  changes_after_ = 5;
  EXPECT_THAT(refusal(), HasSubstr("pack A is spent"));
  EXPECT_EQ(ledger_.attempt(1).infrastructure, "failed_after_treatment");
  EXPECT_TRUE(std::filesystem::exists(path("packet.partial")));
  EXPECT_THROW(begin(), Error);
}

TEST_F(EvalRunnerTest, AFileThatChangesBetweenThePacksIsSeen) {
  run_.changed = [this] { return opened_.size() > 5 ? "the manifest was changed" : ""; };
  EXPECT_THAT(refusal(), HasSubstr("the manifest was changed since"));
  EXPECT_EQ(ledger_.attempt(1).infrastructure, "failed_after_treatment");
}

TEST_F(EvalRunnerTest, ASeedIsRevealedToOneManifestOnly) {
  run_.seed = 42;
  EXPECT_EQ(refusal(), "");
  run_.manifest.policy = "another one";
  run_.manifest_json = manifest_json(run_.manifest);
  run_.packet = path("second");
  told_.clear();
  EXPECT_THAT(refusal(), HasSubstr("a changed candidate needs a new seed"));
  EXPECT_TRUE(told_.empty());
  EXPECT_EQ(ledger_.attempt(2).infrastructure, "failed_before_treatment");
}

TEST_F(EvalRunnerTest, AProcessThatDiesSaysWhatIsSpent) {
  run_.open = [this, open = run_.open](EvalArm arm) {
    if (opened_.size() == 4) fail(Code::kResource, "out of memory");
    return open(arm);
  };
  EXPECT_THAT(refusal(), HasSubstr("out of memory; pack A is spent"));
  EXPECT_EQ(ledger_.attempt(1).reason, "out of memory; pack A is spent: freeze what is there now as a new manifest");
}

TEST_F(EvalRunnerTest, AnInterruptionSaysWhatIsSpent) {
  run_.stop = [this] { return told_.size() >= 3; };
  EXPECT_THAT(refusal(), HasSubstr("interrupted; pack A is spent"));
}

}  // namespace
}  // namespace stet
