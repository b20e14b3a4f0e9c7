#include "lab/submit/submission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "lab/submit/submit_fixture_test.h"
#include "lab/submit/submitted_arm.h"

namespace stet {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(Submission, HoldsWhatThePacketProves) {
  const Submission s = SubmittableBench().submission();
  ASSERT_THAT(s.refused, IsEmpty());
  EXPECT_EQ(s.label, "a label");
  EXPECT_EQ(s.arm, "A");
  const Json& p = s.payload;
  EXPECT_EQ(p["hfId"], "owner/model");
  EXPECT_EQ(p["engineVersion"], "0.1.0+cccccccccccc");
  EXPECT_EQ(p["quantization"], "Q4_1") << "the format of most bytes";
  EXPECT_EQ(p["hardware"], Json::parse(R"({"hwClass":"cpu","gpuName":null,"gpuCount":0,"vramGb":0,
                                           "cpu":"A processor","ramGb":16,"os":"Linux 6.1.0"})"));
  EXPECT_EQ(p["contextLength"], 4096);
  EXPECT_EQ(p["batchSize"], 1);
  EXPECT_EQ(p["promptTokens"], 4);
  EXPECT_EQ(p["outputTokens"], 120);
  // 10 ms a token in the first start, 5 ms in the second: the lower one is the row, and by intervals.
  EXPECT_DOUBLE_EQ(p["tokSOut"].get<double>(), 100.0);
  EXPECT_DOUBLE_EQ(p["engineFlags"]["medianTokS1To100"].get<double>(), 100.0);
  EXPECT_NEAR(p["engineFlags"]["medianTokS1To100Inclusive"].get<double>(), 100.0 * 100 / 99, 1e-9);
  EXPECT_DOUBLE_EQ(p["engineFlags"]["medianTokS1To100OfEachStart"][1].get<double>(), 200.0);
  EXPECT_NEAR(p["ttftMs"].get<double>(), 50.0, 1e-9);
  EXPECT_NEAR(p["tokSTotal"].get<double>(), 120 / 1.241, 1e-6);
}

TEST(Submission, HasTheMembersOfTheContract) {
  const Json p = SubmittableBench().submission().payload;
  std::vector<std::string> names;
  for (const auto& [name, value] : p.items()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("hfId", "modelRevision", "engineName", "engineVersion", "backend", "quantization",
                                 "hardware", "contextLength", "batchSize", "promptTokens", "outputTokens", "tokSOut",
                                 "tokSTotal", "ttftMs", "engineFlags", "notes"));
  const Json& f = p["engineFlags"];
  EXPECT_EQ(f["primaryMetricName"], "median_tok_s_1_100_after_ttft");
  EXPECT_EQ(f["metricWindow"], 100);
  EXPECT_EQ(f["realisticSuiteGatePassed"], true);
  EXPECT_EQ(f["realisticSuiteCachedTokensAllZero"], true);
  EXPECT_EQ(f["realisticSuiteId"], "realistic-v1");
  EXPECT_EQ(f["realisticSuitePrompts"], 15);
  EXPECT_EQ(f["promptTokensByPrompt"].size(), 15u);
  EXPECT_EQ(f["outputTokensByPrompt"]["outage-review"], 120);
  for (const char* name : {"historyAccelerated", "responseReuse", "prefixCaching"}) EXPECT_EQ(f[name], false) << name;
  EXPECT_EQ(f["freshResponseHeadlineValid"], true);
  EXPECT_EQ(f["temperature"], 0);
  EXPECT_EQ(f["topP"], 1);
  EXPECT_EQ(f["retries"], 0);
  EXPECT_EQ(f["exactAnswers"], f["comparedAnswers"]);
  EXPECT_EQ(f["packetManifestSha256"], std::string(64, 'a'));
  EXPECT_EQ(f["modules"][0]["name"], "stet");
  EXPECT_EQ(f["pin"], "unproven") << "what is not said is not made up";
  EXPECT_EQ(f["submitterStated"], Json::parse(R"(["hfId","modelRevision"])"));
}

TEST(Submission, IsAQueueOfOne) {
  const Json queue = Json::parse(queue_text(SubmittableBench().submission()));
  ASSERT_TRUE(queue.is_array() && queue.size() == 1);
  EXPECT_EQ(queue[0]["label"], "a label");
  EXPECT_EQ(queue[0]["payload"]["batchSize"], 1);
}

// What is refused after a change of the identity of all starts.
std::vector<std::string> refused_with(const std::string& member, const Json& value) {
  SubmittableBench b;
  if (value.is_null())
    b.identity.erase(member);
  else
    b.identity[member] = value;
  const Submission s = b.submission();
  EXPECT_TRUE(s.payload.is_null()) << member;
  return s.refused;
}

TEST(Submission, RefusesByNameWhatTheProgramDoesNotSay) {
  const struct {
    const char* member;
    Json value;
    const char* refusal;
  } cases[] = {{"synthetic", true, "synthetic: the weights are random"},
               {"synthetic", nullptr, "synthetic: the program does not say"},
               {"model_sha256", "unproven", "model_sha256:"},
               {"tokenizer_sha256", nullptr, "tokenizer_sha256:"},
               {"weight_formats", nullptr, "quantization:"},
               {"context", nullptr, "contextLength:"},
               {"program", "other", "engineName:"},
               {"version", nullptr, "version:"},
               {"commit", "unproven", "commit:"},
               {"commit_state", "changed", "commit: the tree it was built from was changed"},
               {"commit_state", nullptr, "commit: the tree it was built from was not looked at"},
               {"cpu_model", "unproven", "hardware.cpu:"},
               {"memory_bytes", nullptr, "hardware.ramGb:"},
               {"kernel_release", "unproven", "hardware.os:"},
               {"device", "gpu", "hardware: it ran on 'gpu'"},
               {"history_accelerated", nullptr, "historyAccelerated: the program does not say"}};
  for (const auto& c : cases) EXPECT_THAT(refused_with(c.member, c.value), Contains(StartsWith(c.refusal))) << c.member;
}

TEST(Submission, RefusesWhereStartsDiffer) {
  SubmittableBench b;
  Packet p = b.raw();
  b.identity["memory_bytes"] = 5;
  p.starts[1].identity_json = b.identity.dump();
  const Submission s = build_submission(SubmittableBench::judged(p), "", b.words);
  EXPECT_THAT(s.refused, ElementsAre(StartsWith("hardware.ramGb:")));
}

TEST(Submission, RefusesDraftsThatLearnFromTheText) {
  SubmittableBench b;
  b.bench.teacher = false;
  b.identity["draft"] = "ngram";
  const auto history = [&] { return b.submission().refused; };
  EXPECT_THAT(history(), Contains("historyAccelerated: the draft 'ngram' lacks its mark"));
  b.identity["history_accelerated"] = true;
  EXPECT_THAT(history(), Contains("historyAccelerated: the draft 'ngram' learns from the text, which is no headline"));
  EXPECT_THAT(history(), testing::Not(Contains(HasSubstr("weights")))) << "such a draft has none";
  b.identity["history_accelerated"] = false;
  b.identity["draft"] = "model";
  EXPECT_THAT(history(), Contains("speculation: the cycles were not reported"));
  EXPECT_THAT(history(), Contains("speculation: the hash of the draft's weights is not known"));
}

// What is refused after a change of the raw packet.
std::vector<std::string> refused_after(const std::function<void(Packet&)>& change) {
  const SubmittableBench b;
  Packet p = b.raw();
  change(p);
  const Submission s = build_submission(SubmittableBench::judged(p), "", b.words);
  EXPECT_TRUE(s.payload.is_null());
  return s.refused;
}

TEST(Submission, RefusesRatesThatAreNotProved) {
  EXPECT_THAT(refused_after([](Packet& p) { p.requests[3].usage.cached_tokens = 1; }),
              testing::AllOf(Contains(HasSubstr("verdict: it is invalid (request 'A.0.3': warm cache")),
                             Contains("tokSOut: the packet shows no rate"),
                             Contains(HasSubstr("realisticSuiteCachedTokensAllZero: request 'A.0.3' had 1 cached"))));
  EXPECT_THAT(refused_after([](Packet& p) { p.requests[3].usage.cached_tokens.reset(); }),
              testing::AllOf(Contains(StartsWith("verdict: it is unproven (request 'A.0.3': cache unproven")),
                             Contains(HasSubstr("does not say how many tokens were cached"))));
  EXPECT_THAT(refused_after([](Packet& p) { p.requests[20].chunks[7].token_ids = std::vector<int32_t>{9999}; }),
              Contains(StartsWith("exactness: failed:")));
  EXPECT_THAT(refused_after([](Packet& p) {
                Json plan = Json::parse(p.plan_json);
                plan["arms"][0]["role"] = "candidate";
                p.plan_json = plan.dump();
              }),
              Contains("exactness: unproven: there is no teacher"));
}

TEST(Submission, RefusesOneStartAndStaleProcesses) {
  SubmittableBench once;
  once.bench.starts = 1;
  EXPECT_THAT(once.submission().refused, Contains(StartsWith("starts: 1 of 1 were fresh processes; 2 are the least")));
  EXPECT_THAT(refused_after([](Packet& p) { p.starts[1].fresh = false; }),
              Contains(StartsWith("starts: 1 of 2 were fresh")));
}

TEST(Submission, RefusesWindowsThatAreShorter) {
  const auto shorter = [](Packet& p) {
    for (RequestRecord& r : p.requests) {
      if (r.index != 4) continue;
      r.chunks.resize(60);
      r.usage.completion_tokens = 60;
      r.finish_reason = "stop";
    }
  };
  EXPECT_THAT(refused_after(shorter),
              ElementsAre("median_tok_s_1_100_after_ttft: 2 of 30 answers have fewer than 100 tokens"));
}

TEST(Submission, RefusesOtherSuitesAndPartsOfThem) {
  SubmittableBench part;
  part.bench.steps.resize(13);
  EXPECT_THAT(part.submission().refused, ElementsAre(HasSubstr("not every prompt of the suite was asked")));
  part.bench.steps.resize(4);
  EXPECT_THAT(part.submission().refused, Contains(HasSubstr("4 prompts of")));
  const auto with_suite = [](const char* member, const Json& value) {
    return refused_after([&](Packet& p) {
      Json plan = Json::parse(p.plan_json);
      plan["suite"][member] = value;
      p.plan_json = plan.dump();
    });
  };
  EXPECT_THAT(with_suite("sha256", std::string(64, '0')),
              ElementsAre(HasSubstr("the suite is realistic-v1 (000000000000...), and the gate is")));
  EXPECT_THAT(with_suite("cold", false), Contains(StartsWith("freshResponseHeadlineValid:")));
  EXPECT_THAT(refused_after([](Packet& p) {
                Json plan = Json::parse(p.plan_json);
                plan["arms"][0]["fixed_length"] = true;
                p.plan_json = plan.dump();
              }),
              Contains(HasSubstr("--ignore-eos")));
}

TEST(Submission, RefusesWordsThatAreMissingOrMarkARow) {
  SubmittableBench b;
  b.words = {};
  EXPECT_THAT(b.submission().refused, ElementsAre(StartsWith("hfId:"), StartsWith("modelRevision:")));
  for (const char* id : {"model", "a/b/c", "/b", "a/", "a/b c"}) {
    b.words.hf_id = id;
    EXPECT_THAT(b.submission().refused, Contains(StartsWith("hfId:"))) << id;
  }
  b = {};
  b.words.revision = "main";
  EXPECT_THAT(b.submission().refused, ElementsAre(StartsWith("modelRevision:")));
  b = {};
  b.words.label = "fresh, with N-Gram draft";
  EXPECT_THAT(b.submission().refused, ElementsAre(HasSubstr("holds 'n-gram'")));
  b = {};
  b.identity["cpu_model"] = "History 9000";
  EXPECT_THAT(b.submission().refused, ElementsAre(HasSubstr("payload.hardware.cpu: it holds 'history'")));
}

TEST(Submission, TheArmIsNamedWhereItIsNotClear) {
  SubmittableBench b;
  Packet p = b.raw();
  Json plan = Json::parse(p.plan_json);
  for (const char* name : {"B", "C"}) {
    Json arm = plan["arms"][0];
    arm["name"] = name;
    arm["role"] = "candidate";
    plan["arms"].push_back(arm);
  }
  p.plan_json = plan.dump();
  p = SubmittableBench::judged(p);
  EXPECT_THROW((void)build_submission(p, "", b.words), Error);
  b.words.arm = "D";
  EXPECT_THROW((void)build_submission(p, "", b.words), Error);
  b.words.arm = "A";
  const Submission s = build_submission(p, "", b.words);
  EXPECT_EQ(s.arm, "A");
  EXPECT_THAT(s.refused, Contains("verdict: that of the whole packet is invalid"));
}

TEST(Submission, OtherKindsOfPacketsHaveNoRow) {
  Packet p = SubmittableBench().packet();
  Json results = Json::parse(p.results_json);
  results["kind"] = "compare";
  p.results_json = results.dump();
  EXPECT_THROW((void)build_submission(p, "", {}), Error);
}

TEST(Submission, MarkersAreFoundInEverySpelling) {
  for (const char* text : {"History-accelerated", "ngram", "N-GRAM", "a non-headline row", "prompt-lookup"})
    EXPECT_NE(forbidden_marker(text), "") << text;
  for (const char* text : {"", "fresh", "cold, greedy"}) EXPECT_EQ(forbidden_marker(text), "") << text;
}

}  // namespace
}  // namespace stet
