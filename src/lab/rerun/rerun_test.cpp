#include "lab/rerun/rerun.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "engine/identity.h"
#include "lab/packet/packet_fixture_test.h"
#include "lab/rerun/recorded_sampling.h"

namespace stet {
namespace {

using testing::HasSubstr;
using RerunOutcome = RerunRequest::Outcome;

Options rerun_options(unsigned threads = 2, const std::string& isa = "auto") {
  Options o;
  o.model = "synth:tiny:q4_0";
  o.pack = "none";
  o.threads = threads;
  o.isa = isa;
  o.context = 400;
  o.qualify = false;
  return o;
}

Engine& engine() {
  static Engine one(rerun_options());
  return one;
}

// A record of what this engine answers, one frame a cycle.
RequestRecord answered(const std::string& text, const std::string& sampling_json, uint32_t tokens,
                       const std::string& id) {
  Request request;
  request.prompt = engine().tokenize(text);
  request.max_tokens = tokens;
  request.ignore_eos = true;
  request.sampling = recorded_sampling(sampling_json).params;
  RequestRecord r;
  r.id = id;
  r.arm = "A";
  r.step_id = id;
  r.prompt = Json(text).dump();
  r.prompt_token_ids = request.prompt;
  r.sampling = sampling_json;
  r.max_tokens = tokens;
  engine().generate(request, [&](const CycleEvent& cycle) {
    ChunkEvent chunk;
    chunk.token_ids = std::vector<int32_t>(cycle.tokens.begin(), cycle.tokens.end());
    r.chunks.push_back(chunk);
    return true;
  });
  return r;
}

const std::string kSampled =
    R"({"temperature":0.9,"top_k":40,"top_p":0.95,"repetition_penalty":1.1,"presence_penalty":0.2,"logit_bias":{"65":1.5},"seed":77,"ignore_eos":true})";

Packet packet_of(std::vector<RequestRecord> requests) {
  Packet p;
  p.starts.push_back({"A", 0, true, engine_identity(engine(), false), 0});
  for (uint32_t i = 0; i < requests.size(); ++i) requests[i].index = i;
  p.requests = std::move(requests);
  return p;
}

TEST(Rerun, ConfirmsEveryTokenOnAnyMachine) {
  const Packet p = packet_of({answered("a first question", R"({"temperature":0})", 40, "greedy"),
                              answered("another one", kSampled, 40, "sampled")});
  for (const auto& [threads, isa] : {std::pair{1u, "auto"}, std::pair{2u, "auto"}, std::pair{3u, "scalar"}}) {
    Engine other(rerun_options(threads, isa));
    const RerunReport report = rerun(other, p);
    EXPECT_EQ(report.count(RerunOutcome::confirmed), 2u)
        << threads << " " << isa << " " << report.requests[0].why << report.requests[1].why;
    EXPECT_EQ(report.confirmed_tokens(), 80u);
  }
}

TEST(Rerun, NamesThePositionOfAChangedToken) {
  for (const char* sampling : {R"({"temperature":0})", kSampled.c_str()}) {
    RequestRecord r = answered("a question", sampling, 30, "r");
    int32_t& id = r.chunks.at(17).token_ids->at(0);
    const int32_t right = id;
    id = (id + 1) % 256;
    const RerunReport report = rerun(engine(), packet_of({r}));
    ASSERT_EQ(report.requests[0].outcome, RerunOutcome::differs);
    EXPECT_EQ(report.requests[0].confirmed, 17u);
    EXPECT_EQ(report.requests[0].why,
              fmt::format("token 17 of the answer (position {}) is {} in the packet and {} here",
                          17 + r.prompt_token_ids->size(), id, right));
  }
}

TEST(Rerun, AnotherSeedOrTemperatureGivesOtherTokens) {
  RequestRecord r = answered("a question", kSampled, 30, "r");
  r.sampling.replace(r.sampling.find("77"), 2, "78");
  EXPECT_EQ(rerun(engine(), packet_of({r})).requests[0].outcome, RerunOutcome::differs);
}

TEST(Rerun, WithoutPromptIdsTheMessagesAreTokenised) {
  RequestRecord r = answered("plain text", R"({"temperature":0})", 10, "r");
  r.prompt_token_ids.reset();
  RerunReport report = rerun(engine(), packet_of({r}));
  EXPECT_EQ(report.requests[0].outcome, RerunOutcome::confirmed) << report.requests[0].why;
  EXPECT_TRUE(report.requests[0].tokenised_here);
  r.usage.prompt_tokens = 3;
  EXPECT_THAT(rerun(engine(), packet_of({r})).requests[0].why, HasSubstr("tokenised here it has"));
  r.prompt = R"([{"role":"user"}])";
  EXPECT_THAT(rerun(engine(), packet_of({r})).requests[0].why, HasSubstr("'content' is missing"));
}

TEST(Rerun, SaysWhatItCannotConfirm) {
  const RequestRecord sound = answered("a question", R"({"temperature":0})", 10, "r");
  const auto why = [&](const std::function<void(RequestRecord&, StartRecord&)>& change) {
    Packet p = packet_of({sound});
    change(p.requests[0], p.starts[0]);
    const RerunReport report = rerun(engine(), p);
    EXPECT_EQ(report.requests[0].outcome, RerunOutcome::not_confirmed);
    return report.requests[0].why;
  };
  EXPECT_THAT(why([](auto& r, auto&) {
                for (auto& c : r.chunks) c.token_ids.reset();
              }),
              HasSubstr("no ids of its answer"));
  EXPECT_THAT(why([](auto& r, auto&) { r.sampling.clear(); }), HasSubstr("were not recorded"));
  EXPECT_THAT(why([](auto& r, auto&) { r.sampling = R"({"temperature":0.5})"; }), HasSubstr("seed was not recorded"));
  EXPECT_THAT(why([](auto& r, auto&) { r.sampling = R"({"seed":1})"; }), HasSubstr("temperature was not recorded"));
  EXPECT_THAT(why([](auto& r, auto&) { r.sampling = R"({"temperature":0,"grammar":"x"})"; }),
              HasSubstr("'grammar' is not understood"));
  EXPECT_THAT(why([](auto& r, auto& s) {
                r.sampling = R"({"temperature":1,"seed":1})", s.identity_json = R"({"program":"vllm"})";
              }),
              HasSubstr("noise of another program"));
  EXPECT_THAT(why([](auto&, auto& s) { s.identity_json = R"({"program":"stet","kv":"q8"})"; }),
              HasSubstr("answered with kv q8, and here it is f16 (--kv)"));
  EXPECT_THAT(why([](auto& r, auto&) { r.prompt_token_ids->resize(500, 65); }),
              HasSubstr("and the context here has 400"));
  EXPECT_THAT(why([](auto& r, auto&) { r.sampling = R"({"temperature":-1})"; }), HasSubstr("temperature"));
}

TEST(Rerun, AnIdOutsideTheVocabularyIsADifference) {
  RequestRecord r = answered("a question", R"({"temperature":0})", 10, "r");
  r.chunks[2].token_ids->at(0) = 1 << 20;
  EXPECT_THAT(rerun(engine(), packet_of({r})).requests[0].why, HasSubstr("outside this model's vocabulary of 320"));
}

TEST(Rerun, ModelFilesAreComparedByTheirHash) {
  Packet p = packet_of({});
  EXPECT_EQ(match_model(p, R"({"model_sha256":"aa"})").state, "unproven");
  p.starts[0].identity_json = R"({"model_sha256":"aa"})";
  EXPECT_EQ(match_model(p, R"({"model_sha256":"aa"})").state, "same");
  EXPECT_EQ(match_model(p, R"({"model_sha256":"bb"})").state, "other");
  EXPECT_EQ(match_model(p, R"({"model_sha256":"unproven"})").state, "unproven");
}

}  // namespace
}  // namespace stet
