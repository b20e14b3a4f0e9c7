#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "lab/packet/judge.h"
#include "lab/packet/manifest.h"
#include "lab/packet/packet_fixture_test.h"
#include "lab/packet/teacher.h"

namespace stet {
namespace {

using testing::Contains;
using testing::HasSubstr;

Json results_of(const Packet& packet) { return Json::parse(judge_of("bench").results(packet)); }
Json arm_of(const Packet& packet) { return results_of(packet)["arms"][0]; }

std::vector<std::string> reasons(const Json& arm, const char* which = "invalid") {
  return arm[which].get<std::vector<std::string>>();
}

FakeBench teacher_bench() {
  FakeBench bench;
  bench.teacher = true;
  return bench;
}

TEST(BenchResults, AnArmThatRepeatsItselfIsATeacherAndHasRates) {
  const Json arm = arm_of(teacher_bench().packet());
  EXPECT_EQ(arm["verdict"], "valid") << arm.dump(1);
  EXPECT_EQ(arm["exactness"]["status"], "proved");
  EXPECT_DOUBLE_EQ(arm["headline"]["tokens_per_second"], 100.0);
  EXPECT_EQ(arm["summary"]["first_100_tokens_per_second"]["count"], 6);
  EXPECT_DOUBLE_EQ(arm["class_balanced"]["first_100_tokens_per_second"], 100.0);
  EXPECT_EQ(arm["class_balanced"]["classes"], 2);
  EXPECT_EQ(arm["answers"].size(), 3u);
  EXPECT_EQ(arm["answers"][2]["token_ids"].size(), 120u);
}

TEST(BenchResults, TheLowestStartIsTheHeadline) {
  Packet p = teacher_bench().packet();
  for (RequestRecord& r : p.requests)
    if (r.start == 1)
      for (ChunkEvent& c : r.chunks) c.client_ns = r.sent_ns + (c.client_ns - r.sent_ns) / 2;
  EXPECT_DOUBLE_EQ(arm_of(p)["headline"]["tokens_per_second"], 100.0) << "the other start has 200";
  EXPECT_DOUBLE_EQ(arm_of(p)["by_start"][1]["median_first_100_tokens_per_second"], 200.0);
}

// No member of the results that is a speed holds a number.
void expect_no_speed(const Json& json, const std::string& where = "") {
  for (const auto& [key, value] : json.items()) {
    const bool speed = key.find("per_second") != std::string::npos || key.find("seconds") != std::string::npos ||
                       key == "first_100" || key == "all";
    EXPECT_TRUE(!speed || value.is_null()) << where << "/" << key << " " << value;
    if (value.is_structured()) expect_no_speed(value, where + "/" + key);
  }
}

TEST(BenchResults, SpeedWithoutExactnessHasNoNumber) {
  const Json alone = results_of(FakeBench().packet());
  EXPECT_EQ(alone["verdict"], "unproven");
  EXPECT_EQ(alone["arms"][0]["exactness"]["reason"], "there is no teacher");
  expect_no_speed(alone);

  FakeBench once = teacher_bench();
  once.starts = 1;
  const Json single = results_of(once.packet());
  EXPECT_EQ(single["verdict"], "unproven");
  EXPECT_EQ(single["arms"][0]["exactness"]["reason"], "1 start; the repeat test needs 2 fresh ones");
  expect_no_speed(single);

  Packet differs = teacher_bench().packet();
  differs.requests[5].chunks[50].token_ids = std::vector<int32_t>{1};
  const Json failed = results_of(differs);
  EXPECT_EQ(failed["verdict"], "invalid");
  EXPECT_EQ(failed["arms"][0]["exactness"]["status"], "failed");
  EXPECT_THAT(failed["arms"][0]["exactness"]["first_difference"].get<std::string>(), HasSubstr("position 50"));
  expect_no_speed(failed);
}

TEST(BenchResults, AnInvalidRunHasNoNumberEither) {
  Packet p = teacher_bench().packet();
  p.requests[1].usage.cached_tokens = 2;
  const Json results = results_of(p);
  EXPECT_EQ(results["verdict"], "invalid");
  EXPECT_THAT(reasons(results["arms"][0]), Contains(HasSubstr("request 'A.0.1': warm cache: 2 prompt tokens")));
  EXPECT_EQ(results["arms"][0]["exactness"]["status"], "proved") << "the tokens are the same";
  expect_no_speed(results);
}

TEST(BenchResults, PromptsAreSentOnceToAProcess) {
  FakeBench bench = teacher_bench();
  Packet p = bench.packet();
  p.requests[2].prompt = p.requests[0].prompt;
  EXPECT_THAT(reasons(arm_of(p)),
              Contains(HasSubstr("request 'A.0.2': repeated prompts: request 'A.0.0' sent the same")));
  // Starts that are not fresh are one process: the second one sends everything again.
  p = bench.packet();
  for (StartRecord& s : p.starts) s.fresh = false;
  EXPECT_THAT(reasons(arm_of(p)), Contains(HasSubstr("request 'A.1.0': repeated prompts: request 'A.0.0'")));
  bench.repeats_allowed = true;
  p.plan_json = bench.plan();
  EXPECT_THAT(reasons(arm_of(p)), testing::Not(Contains(HasSubstr("repeated prompts"))));
}

TEST(BenchResults, OneQuestionHasOneAnswer) {
  FakeBench bench = teacher_bench();
  bench.repeats_allowed = true;
  Packet p = bench.packet();
  for (const size_t i : {2u, 5u}) {
    p.requests[i].prompt = p.requests[0].prompt;
    p.requests[i].prompt_token_ids = p.requests[0].prompt_token_ids;
  }
  const Json arm = arm_of(p);
  EXPECT_THAT(
      reasons(arm),
      Contains(HasSubstr("not repeatable: requests 'A.0.0' and 'A.0.2' ask the same and differ at position 0")));
  EXPECT_EQ(arm["exactness"]["status"], "failed");
}

TEST(BenchResults, APromptThatIsLeftOutIsSeen) {
  Packet p = teacher_bench().packet();
  p.requests.erase(p.requests.begin() + 4);
  EXPECT_THAT(reasons(arm_of(p)), Contains("incomplete: request 1 of start 1 is 'plan' where the plan has 'review'"));
  p = teacher_bench().packet();
  p.starts.pop_back();
  std::erase_if(p.requests, [](const RequestRecord& r) { return r.start == 1; });
  EXPECT_THAT(reasons(arm_of(p)), Contains("incomplete: 1 of 2 starts"));
  Packet empty;
  empty.plan_json = teacher_bench().plan();
  EXPECT_EQ(results_of(empty)["verdict"], "invalid");
}

TEST(BenchResults, TheMachineIsWatchedOverAStart) {
  Packet p = teacher_bench().packet();
  // Every request alone stays below what is resolved; together they lost more than 1 %.
  for (RequestRecord& r : p.requests) r.after.steal_ticks = 4;
  EXPECT_THAT(reasons(arm_of(p)), Contains("start 0: steal: 12 of 900 processor ticks went to other machines"));
}

TEST(BenchResults, IdentityOfATeacher) {
  Packet p = teacher_bench().packet();
  p.starts[0].identity_json = R"({"build_id":"1","draft":"ngram"})";
  EXPECT_THAT(reasons(arm_of(p)), Contains("identity: start 0 of the teacher ran with the draft 'ngram'"));
  p.starts[0].identity_json = "{}";
  EXPECT_THAT(reasons(arm_of(p), "unproven"), Contains("identity: start 0 does not say that it ran without a draft"));
  EXPECT_THAT(reasons(arm_of(p), "unproven"), Contains("identity: start 0 does not say which program answered"));
  p.starts[0].identity_json = R"({"build_id":"1","draft":"none","kv":"q8"})";
  EXPECT_THAT(reasons(arm_of(p)), Contains(R"(identity: starts 0 and 1 differ: kv is "q8" and "f16")"));
}

TEST(BenchResults, AcceptanceOfTheWholeRun) {
  FakeBench bench;
  bench.speculative = true;
  const Json arm = arm_of(bench.packet());
  EXPECT_THAT(reasons(arm), Contains("all requests: zero acceptance: 1440 proposals and none accepted"));
  EXPECT_EQ(arm["acceptance"]["cycles"], 720);
}

TEST(BenchResults, AccuracyStandsApartFromExactness) {
  Packet p = teacher_bench().packet();
  Json plan = teacher_bench().plan_json();
  plan["suite"]["steps"][0]["expect"] = std::string(120, 'x') + "\n";
  plan["suite"]["steps"][1]["expect"] = "1073";
  p.plan_json = plan.dump();
  const Json arm = arm_of(p);
  EXPECT_EQ(arm["accuracy"], Json({{"correct", 2}, {"of", 4}}));
  EXPECT_EQ(arm["exactness"]["status"], "proved");
}

TEST(BenchResults, StrangeArmsAreNamed) {
  Packet p = teacher_bench().packet();
  p.starts.push_back({"B", 0, true, "{}", 0});
  EXPECT_EQ(results_of(p)["invalid"][0], "arm 'B' is not in the plan");
  EXPECT_EQ(results_of(p)["verdict"], "invalid");
}

TEST(BenchResults, PlansAreReadStrictly) {
  const auto fails_with = [](const std::function<void(Json&)>& change, const char* message) {
    Json plan = FakeBench().plan_json();
    change(plan);
    Packet packet;
    packet.plan_json = plan.dump();
    try {
      (void)judge_of("bench").results(packet);
      ADD_FAILURE() << message;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr(message));
    }
  };
  fails_with([](Json& p) { p.erase("teacher"); }, "'teacher' is missing");
  fails_with([](Json& p) { p["suite"].erase("cold"); }, "'cold' is missing");
  fails_with([](Json& p) { p["suite"]["steps"].push_back(p["suite"]["steps"][0]); }, "there are two steps 'letter'");
  fails_with([](Json& p) { p["arms"].push_back(p["arms"][0]); }, "there are two arms 'A'");
  fails_with([](Json& p) { p["arms"][0]["role"] = "pupil"; }, "the role is 'pupil'");
  fails_with([](Json& p) { p["arms"][0]["role"] = "teacher", p["arms"][0]["speculative"] = true; },
             "does not speculate");
  fails_with([](Json& p) { p["arms"] = Json::array(); }, "'arms' is no list");
}

class TeacherTest : public PacketFolderTest {
 protected:
  // A candidate whose plan names the teacher packet on disk, with the note that belongs to it.
  Packet candidate(const std::string& teacher_path) const {
    FakeBench bench;
    bench.speculative = false;
    bench.teacher_manifest = manifest_sha256(teacher_path);
    Packet p = bench.packet();
    p.notes.emplace_back("teacher", teacher_note(teacher_path));
    return p;
  }
};

TEST_F(TeacherTest, AnEarlierPacketProvesACandidate) {
  teacher_bench().write(path("teacher"));
  const Packet p = candidate(path("teacher"));
  const Json arm = arm_of(p);
  EXPECT_EQ(arm["verdict"], "valid") << arm.dump(1).substr(0, 2000);
  EXPECT_EQ(arm["exactness"]["reason"], "all 6 answers are the teacher's, token by token");
  EXPECT_EQ(arm["requests"][0]["exact"], true);
  EXPECT_DOUBLE_EQ(arm["headline"]["tokens_per_second"], 100.0);
}

TEST_F(TeacherTest, ADifferenceIsNamed) {
  teacher_bench().write(path("teacher"));
  Packet p = candidate(path("teacher"));
  p.requests[4].chunks[99].token_ids = std::vector<int32_t>{3};
  const Json arm = arm_of(p);
  EXPECT_EQ(arm["verdict"], "invalid");
  EXPECT_THAT(arm["exactness"]["first_difference"].get<std::string>(),
              HasSubstr("request 'A.1.1' (step 'review', start 1), position 99: expected"));
  EXPECT_EQ(arm["exactness"]["equal"], 5);
  expect_no_speed(arm);
}

TEST_F(TeacherTest, AnotherPromptOrOtherNumericsProveNothing) {
  teacher_bench().write(path("teacher"));
  Packet p = candidate(path("teacher"));
  p.requests[0].prompt += " ";
  EXPECT_THAT(arm_of(p)["exactness"]["reason"].get<std::string>(),
              HasSubstr("request 'A.0.0': the teacher was asked something else"));
  p = candidate(path("teacher"));
  for (StartRecord& s : p.starts) s.identity_json = R"({"build_id":"1","kv":"q8"})";
  const Json arm = arm_of(p);
  EXPECT_EQ(arm["exactness"]["status"], "unproven");
  EXPECT_EQ(arm["exactness"]["reason"], R"(the teacher answered another question: kv is "f16" and "q8")");
  expect_no_speed(arm);
}

TEST_F(TeacherTest, AnExchangedTeacherIsFound) {
  teacher_bench().write(path("teacher"));
  FakeBench other = teacher_bench();
  other.starts = 3;
  other.write(path("other"));
  Packet p = candidate(path("teacher"));
  p.notes[0].second = teacher_note(path("other"));
  EXPECT_THAT(arm_of(p)["exactness"]["reason"].get<std::string>(), HasSubstr("the plan names the teacher packet"));
  // The right manifest with other results.
  p = candidate(path("teacher"));
  Json note = Json::parse(p.notes[0].second);
  note["results"] = Json::parse(teacher_note(path("other")))["results"];
  p.notes[0].second = note.dump();
  EXPECT_THAT(arm_of(p)["exactness"]["reason"].get<std::string>(), HasSubstr("are not those of its manifest"));
  p.notes.clear();
  EXPECT_THAT(arm_of(p)["exactness"]["reason"].get<std::string>(), HasSubstr("0 notes hold the teacher's answers"));
  EXPECT_EQ(arm_of(p)["exactness"]["status"], "unproven");
}

TEST_F(TeacherTest, OnlyWhatRepeatsItselfIsATeacher) {
  FakeBench once = teacher_bench();
  once.starts = 1;
  once.write(path("once"));
  EXPECT_THROW((void)teacher_note(path("once")), Error);
  FakeBench().write(path("candidate"));
  EXPECT_THROW((void)teacher_note(path("candidate")), Error);
}

TEST_F(TeacherTest, AnArmOfTheSamePacketMayBeTheTeacher) {
  Packet p = teacher_bench().packet();
  Json plan = teacher_bench().plan_json();
  Json candidate = plan["arms"][0];
  candidate["name"] = "B";
  candidate["role"] = "candidate";
  plan["arms"].push_back(candidate);
  p.plan_json = plan.dump();
  const std::vector<RequestRecord> teacher_requests = p.requests;
  for (uint32_t s = 0; s < 2; ++s) p.starts.push_back({"B", s, true, p.starts[s].identity_json, 0});
  for (RequestRecord r : teacher_requests) {
    r.arm = "B";
    r.id[0] = 'B';
    p.requests.push_back(r);
  }
  Json results = results_of(p);
  EXPECT_EQ(results["verdict"], "valid") << results["arms"][1].dump(1).substr(0, 3000);
  EXPECT_EQ(results["arms"][1]["exactness"]["against"], "arm 'A'");
  p.requests.back().chunks.pop_back();
  p.requests.back().usage.completion_tokens = 119;
  p.requests.back().finish_reason = "stop";
  results = results_of(p);
  EXPECT_EQ(results["verdict"], "invalid");
  EXPECT_THAT(results["arms"][1]["exactness"]["first_difference"].get<std::string>(),
              HasSubstr("position 119: expected"));
}

TEST(BenchResults, AreTheSameBytesEveryTime) {
  const Packet p = teacher_bench().packet();
  EXPECT_EQ(recompute_results(p), recompute_results(p));
  EXPECT_EQ(recompute_results(p).back(), '\n');
}

}  // namespace
}  // namespace stet
