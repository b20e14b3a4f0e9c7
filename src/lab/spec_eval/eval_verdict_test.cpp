#include "lab/spec_eval/eval_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "lab/packet/judge.h"
#include "lab/spec_eval/eval_test_util.h"
#include "lab/spec_eval/trace.h"

namespace stet {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One run of the whole contract, which the tests damage.
class EvalVerdictTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { good_ = new Packet(fake_evaluation(fake_manifest())); }
  static void TearDownTestSuite() {
    delete good_;
    good_ = nullptr;
  }

  static EvalVerdict judged(const Packet& packet, const EvalManifest& manifest = fake_manifest()) {
    return judge_evaluation(manifest, packet);
  }
  static EvalVerdict judged(void (*damage)(Packet&)) {
    Packet packet = *good_;
    damage(packet);
    return judged(packet);
  }
  static const EvalGate& gate(const EvalVerdict& v, const std::string& name, const std::string& pack = "") {
    static const EvalGate none;
    for (const EvalGate& g : v.gates)
      if (g.name == name && g.pack == pack) return g;
    ADD_FAILURE() << "no gate " << name;
    return none;
  }
  static std::string first_reason(const EvalVerdict& v) { return v.reasons.empty() ? "" : v.reasons[0]; }

  static Packet* good_;
};
Packet* EvalVerdictTest::good_ = nullptr;

FakeSpeed slow_candidate(EvalArm arm) {
  FakeSpeed s = fake_speed(arm);
  if (arm == EvalArm::candidate) s.cycle_ns = 20'000'000;
  return s;
}

RequestRecord& request_of(Packet& packet, EvalArm arm, const std::string& step) {
  for (RequestRecord& r : packet.requests)
    if (r.arm == eval_arm_name(arm) && r.step_id == step) return r;
  throw std::runtime_error("no step " + step);
}

TEST_F(EvalVerdictTest, ACandidateThatMeetsEveryGateIsPromoted) {
  const EvalVerdict v = judged(*good_);
  EXPECT_EQ(v.verdict, "promoted") << ::testing::PrintToString(v.reasons)
                                   << ::testing::PrintToString(v.of_state(GateState::unproven));
  EXPECT_FALSE(v.diverged);
  ASSERT_EQ(v.packs.size(), 2u);
  // 5 cycles of 10 ms give 13 tokens, 3 of 11 ms give 5; the time to the first token is the same.
  ASSERT_TRUE(v.packs[0].decode_gain.has_value());
  EXPECT_NEAR(*v.packs[0].decode_gain, (13.0 / 50) / (5.0 / 33) - 1, 0.05);
  EXPECT_GT(*v.packs[0].arms[2].emitted_per_cycle, 2.2);
  EXPECT_NEAR(*v.packs[0].arms[2].draft_and_policy_ms, 0.3, 1e-9);
  EXPECT_NEAR(*v.packs[0].arms[0].emitted_per_cycle, 1.0, 1e-12);
}

TEST_F(EvalVerdictTest, ResultsAreAFunctionOfThePacket) {
  const Json results = Json::parse(spec_eval_results(*good_));
  EXPECT_EQ(results["verdict"], "promoted");
  EXPECT_EQ(results["packs"].size(), 2u);
  EXPECT_EQ(results["attested_by_the_operator"].size(), 3u);
  EXPECT_EQ(spec_eval_results(*good_), spec_eval_results(*good_));
}

// The second answer of the candidate to a request of pack B, one of several cycles.
RequestRecord& repeated_answer(Packet& packet) {
  for (RequestRecord& r : packet.requests)
    if (r.arm == "candidate" && r.step_id.starts_with("B-") && r.step_id.ends_with("#2") && r.chunks.size() > 2)
      return r;
  throw std::runtime_error("no repeated answer of several cycles");
}

TEST_F(EvalVerdictTest, OneOtherTokenLeavesNoSpeed) {
  const EvalVerdict v = judged([](Packet& p) { repeated_answer(p).chunks[1].token_ids->at(0) ^= 1; });
  EXPECT_EQ(v.verdict, "not promoted");
  EXPECT_TRUE(v.diverged);
  EXPECT_THAT(v.packs, IsEmpty());
  EXPECT_EQ(gate(v, "parity").state, GateState::failed);
  EXPECT_THAT(gate(v, "parity").what, ContainsRegex("candidate, step 'B-[0-9]+#2', position"));
  EXPECT_EQ(gate(v, "state").state, GateState::failed) << "its first answer was another one";
  EXPECT_EQ(Json::parse(spec_eval_results(*good_))["packs"].size(), 2u);
}

TEST_F(EvalVerdictTest, AnotherLogProbabilityIsSeen) {
  const EvalVerdict v = judged([](Packet& p) {
    for (RequestRecord& r : p.requests)
      if (r.arm == "candidate" && r.chunks[0].logprobs) r.chunks[0].logprobs->at(0) -= 1e-9;
  });
  EXPECT_EQ(gate(v, "target_logprobs").state, GateState::failed);
  EXPECT_TRUE(v.diverged);
}

TEST_F(EvalVerdictTest, WhatSaysNothingIsVoid) {
  const auto is_void = [](const EvalVerdict& v, const std::string& why) {
    EXPECT_EQ(v.verdict, "void");
    EXPECT_THAT(v.reasons, Contains(HasSubstr(why)));
    EXPECT_THAT(v.packs, IsEmpty());
  };
  is_void(judged([](Packet& p) { request_of(p, EvalArm::current, "A-03").usage.cached_tokens = 4; }), "warm cache");
  is_void(judged([](Packet& p) { request_of(p, EvalArm::current, "A-03").complete = false; }), "truncated events");
  is_void(judged([](Packet& p) { p.requests.pop_back(); }), "answered");
  is_void(judged([](Packet& p) { std::swap(p.requests[3], p.requests[4]); }), "is not step");
  is_void(judged([](Packet& p) { request_of(p, EvalArm::target, "A-03").max_tokens += 1; }), "is not step");
  is_void(judged([](Packet& p) { p.starts[1].fresh = false; }), "no fresh process");
  is_void(judged([](Packet& p) { p.starts[2].identity_json = fake_identity(EvalArm::current); }),
          "not what was frozen");
  is_void(judged([](Packet& p) { p.starts.pop_back(); }), "starts of");
  is_void(judged([](Packet& p) { std::swap(p.starts[3].client_ns, p.starts[5].client_ns); }), "out of order");
  is_void(judged([](Packet& p) { p.notes.clear(); }), "no pack was revealed");
  is_void(judged([](Packet& p) { p.starts.clear(); }), "nothing was measured");
}

TEST_F(EvalVerdictTest, WhatIsNotShownIsUnproven) {
  EvalManifest m = fake_manifest();
  m.attested = false;
  EvalVerdict v = judged(*good_, m);
  EXPECT_EQ(v.verdict, "not promoted");
  EXPECT_EQ(gate(v, "attested").state, GateState::unproven);
  EXPECT_THAT(v.reasons, IsEmpty());
  EXPECT_TRUE(v.unproven());
  v = judged([](Packet& p) {
    for (RequestRecord& r : p.requests) r.usage.cached_tokens.reset();
  });
  EXPECT_EQ(gate(v, "cold").state, GateState::unproven);
  EXPECT_EQ(v.verdict, "not promoted");
  v = judged([](Packet& p) {
    for (RequestRecord& r : p.requests)
      for (ChunkEvent& c : r.chunks) c.draft_ns.reset();
  });
  EXPECT_EQ(gate(v, "traces").state, GateState::unproven);
  EXPECT_EQ(gate(v, "draft_and_policy", "A").state, GateState::unproven);
  v = judged([](Packet& p) {
    for (RequestRecord& r : p.requests)
      for (ChunkEvent& c : r.chunks) c.logprobs.reset();
  });
  EXPECT_EQ(gate(v, "target_logprobs").state, GateState::unproven);
}

TEST_F(EvalVerdictTest, RequestsMustNotBeKnownByTheirIds) {
  const EvalVerdict v = judged([](Packet& p) { p.requests[5].id = "A-05"; });
  EXPECT_EQ(gate(v, "request_ids").state, GateState::failed);
}

TEST_F(EvalVerdictTest, APromptThatIsNotThePacksIsSeen) {
  using Change = void (*)(Json & request);
  // The last long one: the steps that ask for log-probabilities are for the first short ones, and stay what they were.
  const auto forged = [](Change change) {
    Packet p = *good_;
    Json note = Json::parse(p.notes[0].second);
    Json* last = nullptr;
    for (Json& request : note["requests"])
      if (request["long"] == true) last = &request;
    change(*last);
    p.notes[0].second = note.dump();
    return gate(judged(p), "packs").state;
  };
  EXPECT_EQ(forged([](Json&) {}), GateState::passed);
  EXPECT_EQ(forged([](Json& r) { r["prompt_tokens"] = 5000; }), GateState::failed);
  EXPECT_EQ(forged([](Json& r) { r["prompt_tokens"] = r["prompt_bucket"][0]; }), GateState::passed)
      << "within the bucket";
  EXPECT_EQ(forged([](Json& r) { r["prompt_bucket"] = {100, 8000}; }), GateState::failed);
  EXPECT_EQ(forged([](Json& r) { r["long"] = false; }), GateState::failed);
}

TEST_F(EvalVerdictTest, AHistoryDraftIsNoPolicyOfThisContract) {
  EvalManifest m = fake_manifest();
  Json identity = Json::parse(fake_identity(EvalArm::candidate));
  identity["history_accelerated"] = true;
  m.arms[2].identity_json = frozen_identity(identity.dump());
  Packet p = *good_;
  for (StartRecord& s : p.starts)
    if (s.arm == "candidate") s.identity_json = identity.dump();
  const EvalVerdict v = judged(p, m);
  EXPECT_EQ(v.verdict, "not promoted");
  EXPECT_THAT(first_reason(v), HasSubstr("history-accelerated"));
}

TEST_F(EvalVerdictTest, AnotherModelInOneArmIsSeen) {
  EvalManifest m = fake_manifest();
  Json identity = Json::parse(fake_identity(EvalArm::target));
  identity["model_sha256"] = std::string(64, 'b');
  m.arms[0].identity_json = frozen_identity(identity.dump());
  Packet p = *good_;
  for (StartRecord& s : p.starts)
    if (s.arm == "target") s.identity_json = identity.dump();
  EXPECT_EQ(gate(judged(p, m), "identity").state, GateState::failed);
}

// Its pack holds the blocks that draft, its files are those of the target.
TEST_F(EvalVerdictTest, AnotherPackIsAllowedToADraftOfTheCheckpointOnly) {
  const auto state_of = [&](const char* draft, const char* key) {
    EvalManifest m = fake_manifest();
    Packet p = *good_;
    for (const EvalArm arm : kEvalArms) {
      Json identity = Json::parse(fake_identity(arm));
      identity[key] = arm == EvalArm::candidate ? "p2" : "p1";
      if (arm == EvalArm::candidate) identity["draft"] = draft;
      m.arms[static_cast<size_t>(arm)].identity_json = frozen_identity(identity.dump());
      for (StartRecord& s : p.starts)
        if (s.arm == eval_arm_name(arm)) s.identity_json = identity.dump();
    }
    return gate(judged(p, m), "identity").state;
  };
  EXPECT_EQ(state_of("dspark", "pack"), GateState::passed);
  EXPECT_EQ(state_of("model", "pack"), GateState::failed);
  EXPECT_EQ(state_of("dspark", "build_id"), GateState::failed);
}

TEST_F(EvalVerdictTest, ASlowCandidateIsNotPromotedAndSaysWhy) {
  const EvalVerdict v = judged(fake_evaluation(fake_manifest(), slow_candidate));
  EXPECT_EQ(v.verdict, "not promoted");
  for (const char* name : {"pack_wall", "median_decode", "mixed", "lower_bound"})
    for (const char* pack : {"A", "B"})
      EXPECT_EQ(gate(v, name, pack).state, GateState::failed) << gate(v, name, pack).what;
  EXPECT_FALSE(v.holds());
}

TEST_F(EvalVerdictTest, OneSlowClassIsEnough) {
  const EvalVerdict v = judged([](Packet& p) {
    for (RequestRecord& r : p.requests) {
      if (r.arm != "candidate" || r.step_class != "long" || r.chunks.size() < 2) continue;
      const int64_t first = r.chunks[0].client_ns;  // every gap twice as long
      for (ChunkEvent& c : r.chunks) c.client_ns = first + (c.client_ns - first) * 2;
      r.end_ns = r.chunks.back().client_ns;
    }
  });
  EXPECT_EQ(gate(v, "p10", "A").state, GateState::failed);
  EXPECT_THAT(gate(v, "p10", "A").what, HasSubstr("'long'"));
}

TEST_F(EvalVerdictTest, ASecondPackThatWasSavedIsNoFault) {
  Packet slow = fake_evaluation(fake_manifest(), slow_candidate, 1);
  EvalVerdict v = judged(slow);
  EXPECT_EQ(v.verdict, "not promoted");
  EXPECT_THAT(gate(v, "both_packs").what, HasSubstr("the second was not revealed"));
  v = judged(fake_evaluation(fake_manifest(), fake_speed, 1));
  EXPECT_EQ(v.verdict, "not promoted") << "one pack is half of the evidence";
  EXPECT_TRUE(v.holds()) << "and the second may be run";
}

TEST_F(EvalVerdictTest, LoopsHaveNoSpeedAndManyOfThemProveNothing) {
  const auto loop = [](Packet& p, const std::set<std::string>& requests) {
    for (RequestRecord& r : p.requests) {
      if (requests.count(r.step_id.substr(0, 4)) == 0) continue;
      int32_t n = 0;
      for (ChunkEvent& c : r.chunks)
        for (int32_t& id : *c.token_ids) id = n++ % 7;
    }
  };
  std::set<std::string> long_answers;
  for (const RequestRecord& r : good_->requests)
    if (r.token_ids().size() >= 100 && r.step_id.starts_with("A-")) long_answers.insert(r.step_id.substr(0, 4));
  ASSERT_GT(long_answers.size(), 20u);
  Packet p = *good_;
  loop(p, {*long_answers.begin()});
  EvalVerdict v = judged(p);
  EXPECT_EQ(v.verdict, "promoted") << ::testing::PrintToString(v.reasons);
  EXPECT_EQ(v.packs[0].loops, 1u);
  loop(p, long_answers);
  v = judged(p);
  EXPECT_EQ(gate(v, "answers").state, GateState::unproven);
  EXPECT_EQ(v.verdict, "not promoted");
}

TEST_F(EvalVerdictTest, ProposalsOfALoopStandAndSayNothing) {
  EvalManifest m = fake_manifest();
  Packet p = *good_;
  std::string looping;
  for (const RequestRecord& r : p.requests)
    if (looping.empty() && r.token_ids().size() >= 400) looping = r.step_id.substr(0, 4);
  for (RequestRecord& r : p.requests) {
    if (r.step_id.substr(0, 4) != looping) continue;
    std::vector<int32_t> ids = r.token_ids();
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i % 7);
    size_t at = 0;
    for (ChunkEvent& c : r.chunks) {  // as many tokens a frame as before, and every proposal stands
      for (int32_t& id : *c.token_ids) id = ids[at++];
      if (r.arm == "candidate") c.depth = c.accepted = 3;
    }
  }
  const EvalVerdict v = judged(p, m);
  EXPECT_EQ(gate(v, "acceptance").state, GateState::passed) << gate(v, "acceptance").what << first_reason(v);
}

TEST_F(EvalVerdictTest, AScreeningIsNeverMore) {
  EvalManifest m = fake_manifest();
  m.scale = 0.5;
  EXPECT_EQ(judged(fake_evaluation(m), m).verdict, "screening");
}

TEST_F(EvalVerdictTest, TracesHoldEveryFieldOfTheContract) {
  Packet p = *good_;
  std::erase_if(p.requests, [](const RequestRecord& r) { return r.step_id != "A-00"; });
  std::vector<Json> lines;
  write_traces(p, [&](const std::string& line) { lines.push_back(Json::parse(line)); });
  ASSERT_FALSE(lines.empty());
  size_t tokens = 0;
  for (const Json& line : lines) {
    if (line["arm"] != "candidate") continue;
    EXPECT_EQ(line["generated_position"], tokens);
    EXPECT_EQ(line["verifier_width"], 4);
    EXPECT_THAT(line["rejection_or_bonus"].get<std::string>(), ::testing::AnyOf("rejection", "bonus", "early_eos"));
    EXPECT_NEAR(line["draft_and_policy_ms"].get<double>(), 0.3, 1e-9);
    tokens += line["emitted_tokens"].get<size_t>();
  }
  EXPECT_GT(tokens, 3u);
}

TEST(EvalSteps, EveryRequestTwiceThenOneIsLeft) {
  const EvalManifest m = fake_manifest();
  const RevealedPack pack = fake_pack(m, 0);
  const std::vector<EvalStep> steps = eval_steps(m.contract, pack.requests);
  ASSERT_GT(steps.size(), 130u);
  EXPECT_EQ(steps[0].id, "A-00");
  EXPECT_EQ(steps[64].id, "A-63#2") << "the second time backwards: every request follows another one";
  EXPECT_EQ(steps[128].kind, StepKind::cancelled);
  EXPECT_EQ(steps[129].kind, StepKind::after_cancel);
  EXPECT_EQ(steps.back().kind, StepKind::logprobs);
  std::set<std::string> ids;
  for (const EvalStep& s : steps) EXPECT_TRUE(ids.insert(s.id).second) << s.id;
  const PlannedRequest sent = planned_step(steps[128], pack.requests[steps[128].request], "f00");
  const std::string line = planned_request_json(sent);
  EXPECT_EQ(line.find("A-"), std::string::npos) << "no label is sent: " << line.substr(0, 80);
  EXPECT_TRUE(is_request_id(draw_request_id()));
  EXPECT_FALSE(is_request_id("A-00"));
  EXPECT_THAT(launch_order(1), ElementsAre(EvalArm::candidate, EvalArm::current, EvalArm::target));
}

}  // namespace
}  // namespace stet
