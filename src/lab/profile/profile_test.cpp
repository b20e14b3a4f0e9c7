#include "lab/profile/profile.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "lab/tiny_engine_test.h"

namespace stet {
namespace {

Options profile_options(std::string draft = "none") {
  Options o = test::tiny_engine(300);
  o.draft = std::move(draft);
  return o;
}

ProfileOptions small() {
  return {.context = 20, .rows = 1, .repeats = 6, .cycles = 4, .ceiling_bytes = 64u << 20, .progress = nullptr};
}

TEST(StageReads, AreEveryWeightOnceAndTheRowsThatAreSeen) {
  Engine engine(profile_options());
  Engine::Parts& p = engine.parts();
  const auto matrix = [&](const std::string& name) { return p.pack->matrix(name + ".weight")->bytes(); };
  const PassProfile pass = profile_pass(p, small());
  std::map<std::string, StageReads> stages;
  for (const StageTime& s : pass.stages) stages[s.name] = s.reads;
  ASSERT_EQ(pass.stages.size(), 1u + 2 * 5 + 1);  // an embedding, five stages a layer, the head with its norm
  const uint64_t hidden = p.desc.hidden;
  const StageReads qkv = stages.at("blk.1.attn_q+attn_k+attn_v");
  EXPECT_EQ(qkv.weights, matrix("blk.1.attn_q") + matrix("blk.1.attn_k") + matrix("blk.1.attn_v") + hidden * 4);
  EXPECT_EQ(qkv.activations, hidden * 4);
  EXPECT_EQ(qkv.kv, 0u);
  const StageReads attend = stages.at("blk.0.rope_store+attend");
  EXPECT_EQ(attend.kv, 21u * 2 * 2 * 32 * 2);  // positions, keys and values, heads, elements, bytes
  EXPECT_EQ(attend.activations, (6u + 2 + 2) * 32 * 4);
  const StageReads down = stages.at("blk.0.ffn_down");
  EXPECT_EQ(down.weights, matrix("blk.0.ffn_down"));
  EXPECT_EQ(down.activations, uint64_t{p.desc.ffn} * 4 + hidden * 4);  // it adds to the residual stream
  EXPECT_EQ(stages.at("output").weights, matrix("output") + hidden * 4);
  // One row of the table, packed 16 rows together.
  EXPECT_EQ(stages.at("token_embd").weights, p.pack->matrix("token_embd.weight")->tile_bytes() / 16);
}

TEST(Profile, TheStagesOfAWidePassAreTimedToo) {
  Engine engine(profile_options());
  ProfileOptions options = small();
  options.rows = 40;
  const PassProfile pass = profile_pass(engine.parts(), options);
  std::map<std::string, StageTime> kinds;
  for (const StageTime& kind : pass.by_kind()) kinds[kind.kind] = kind;
  EXPECT_EQ(kinds.at("prepare ffn_down").name, "2");
  EXPECT_EQ(kinds.at("attend").reads.kv, 2u * 60 * 2 * 2 * 32 * 2);
  // The logits of 16 rows.
  EXPECT_EQ(kinds.at("output").reads.activations, 16u * engine.parts().desc.hidden * 4);
}

TEST(Profile, PartsAddUpToTheWatchedPass) {
  Engine engine(profile_options());
  const ProfileReport r = profile(engine.parts(), small());
  EXPECT_GT(r.ceiling_before, 1e8);
  EXPECT_GT(r.ceiling_after, 1e8);
  for (const StageTime& s : r.pass.stages) EXPECT_GE(s.seconds, 0) << s.name;
  EXPECT_GE(r.pass.outside, 0);
  EXPECT_NEAR(r.pass.sum() + r.pass.outside, r.pass.whole.parts, 1e-9);
  EXPECT_NEAR(r.pass.watched, r.pass.whole.parts, 1e-9);
  double kinds = 0;
  for (const StageTime& s : r.pass.by_kind()) kinds += s.seconds;
  EXPECT_NEAR(kinds, r.pass.sum(), 1e-9);
  EXPECT_EQ(r.cycle.cycles, 4u);
  EXPECT_EQ(r.cycle.tokens, 1.0);
  EXPECT_EQ(r.cycle.proposed, 0.0);
  EXPECT_GT(r.cycle.verify, 0);
}

TEST(Profile, ADraftIsAPhase) {
  Engine engine(profile_options("model:synth:tiny-gqa:q4_0"));
  ProfileOptions options = small();
  std::vector<TraceSpan> trace;
  const CycleProfile c = profile_cycles(engine.parts(), options, trace);
  EXPECT_EQ(c.proposed, 4.0);
  EXPECT_EQ(c.tokens, 5.0);  // it is the target itself
  EXPECT_GT(c.draft, 0);
  EXPECT_GT(c.accept, 0);
  EXPECT_NEAR(c.draft + c.verify + c.accept + c.commit + c.between, c.whole.parts, 1e-12);
  EXPECT_LE(c.whole.parts, c.watched * (1 + 1e-9));  // sums of the same times, in another order
}

// Watching changes nothing, and ends.
TEST(Profile, WatchedPassesHaveTheSameBits) {
  Engine engine(profile_options());
  Engine::Parts& p = engine.parts();
  const std::vector<int32_t> tokens = profile_tokens(p.desc, 20);
  const float* logits = p.decoder->forward(tokens, 0, 3);
  const std::vector<float> want(logits, logits + 3 * size_t{p.desc.vocab});
  StageMarks marks;
  p.decoder->set_marks(&marks);
  logits = p.decoder->forward(tokens, 0, 3);
  EXPECT_EQ(std::memcmp(logits, want.data(), want.size() * sizeof(float)), 0);
  const size_t seen = marks.marks.size();
  EXPECT_GT(seen, 10u);
  EXPECT_EQ(marks.marks[0].stage, nullptr);
  for (size_t i = 1; i < seen; ++i) EXPECT_GE(marks.marks[i].when, marks.marks[i - 1].when);
  p.decoder->set_marks(nullptr);
  p.decoder->forward(tokens, 0, 3);
  EXPECT_EQ(marks.marks.size(), seen);
}

TEST(Profile, AWholeReconcilesWithinThreePercent) {
  EXPECT_TRUE((Reconciliation{100, 97.1}.holds()));
  EXPECT_TRUE((Reconciliation{100, 102.9}.holds()));
  EXPECT_FALSE((Reconciliation{100, 96.9}.holds()));
  EXPECT_FALSE((Reconciliation{100, 103.1}.holds()));
  EXPECT_FALSE((Reconciliation{0, 0}.holds()));
}

TEST(Profile, AContextThatIsTooShortIsRefused) {
  Engine engine(profile_options());
  ProfileOptions options = small();
  options.context = 298;
  EXPECT_THROW(profile(engine.parts(), options), Error);
}

// What chrome://tracing and Perfetto need: complete events with times in microseconds, tracks with names, spans inside
// their parents.
TEST(Trace, HoldsCyclesPhasesAndStages) {
  Engine engine(profile_options("ngram"));
  const ProfileReport r = profile(engine.parts(), small());
  const auto trace = nlohmann::json::parse(chrome_trace(r.trace, "a \"profile\""));
  std::map<int, std::string> tracks;
  std::map<std::string, std::vector<std::pair<double, double>>> spans;
  for (const auto& e : trace.at("traceEvents")) {
    ASSERT_EQ(e.at("pid"), 1);
    if (e.at("ph") == "M") {
      if (e.at("name") == "thread_name") tracks[e.at("tid")] = e.at("args").at("name");
      continue;
    }
    ASSERT_EQ(e.at("ph"), "X");
    ASSERT_FALSE(e.at("name").get<std::string>().empty());
    const double from = e.at("ts"), length = e.at("dur");
    EXPECT_GE(length, 0);
    spans[tracks.at(e.at("tid"))].emplace_back(from, from + length);
  }
  EXPECT_EQ(spans.at("cycles").size(), 4u);
  EXPECT_EQ(spans.at("phases").size(), 16u);
  EXPECT_EQ(spans.at("stages").size(), 4u * 12);
  for (auto& [track, all] : spans)
    for (size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i].first, all[i - 1].second - 1e-3) << track;
  const auto [first, last] = std::pair(spans["cycles"].front().first, spans["cycles"].back().second);
  for (const auto& [from, to] : spans["stages"]) {
    EXPECT_GE(from, first);
    EXPECT_LE(to, last + 1e-3);
  }
  EXPECT_EQ(trace.at("otherData").at("about"), "a \"profile\"");
}

}  // namespace
}  // namespace stet
