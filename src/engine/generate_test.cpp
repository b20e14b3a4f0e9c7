// Requests that end early, fail or follow each other: the next answer is that of a fresh engine.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "engine/parts.h"
#include "stet/engine.h"
#include "weights/gguf_writer.h"
#include "weights/patched_source_test.h"

namespace stet {
namespace {

constexpr uint64_t kBaseSeed = 77;
constexpr uint32_t kContext = 400;

Options options(const std::string& draft = "none") {
  Options o;
  o.model = "synth:tiny:q4_0";
  o.threads = 2;
  o.context = kContext;
  o.pack = "none";
  o.prompt_rows = 16;
  o.draft = draft;
  o.draft_depth = 6;
  o.qualify = false;
  return o;
}

std::vector<int32_t> tokens(uint32_t n, uint32_t seed, uint32_t vocab = 320) {
  std::vector<int32_t> out(n);
  uint32_t x = seed;
  for (int32_t& t : out) {
    x = x * 1664525u + 1013904223u;
    t = static_cast<int32_t>(4 + (x >> 8) % (vocab - 4));  // no control tokens
  }
  return out;
}

Request request(uint32_t prompt, uint32_t seed, uint32_t max_tokens = 20) {
  Request r;
  r.prompt = tokens(prompt, seed);
  r.max_tokens = max_tokens;
  r.sampling = {.temperature = 0.9f, .top_p = 0.95f, .seed = seed};
  return r;
}

// The answer of an engine that did nothing else, without a draft.
const Generation& fresh_answer(const Request& r) {
  static std::map<std::string, Generation> known;
  const std::string key = fmt::format("{} {} {}", r.prompt.size(), r.sampling.seed, r.max_tokens);
  if (!known.contains(key)) known.emplace(key, Engine(options()).generate(r));
  return known.at(key);
}

void expect_same(const Generation& got, const Generation& want) {
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(got.text, want.text);
  EXPECT_EQ(got.finish, want.finish);
  EXPECT_EQ(got.digest(), want.digest());
}

class Generate : public testing::TestWithParam<const char*> {
 protected:
  Engine engine{options(GetParam())};
};

TEST_P(Generate, DraftsDoNotChangeTheAnswer) {
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    const Request r = request(20 + 17 * seed, seed);
    expect_same(engine.generate(r), fresh_answer(r));
  }
}

TEST_P(Generate, ARequestCancelledWhileItPrefillsLeavesNoTrace) {
  for (uint32_t i = 1; i <= 8; ++i) {
    SCOPED_TRACE(fmt::format("seed {}", kBaseSeed + i));
    uint32_t left = static_cast<uint32_t>((kBaseSeed + i) * 7 % 10);
    const Generation g = engine.generate(request(200, i), nullptr, [&](uint32_t done, uint32_t total) {
      EXPECT_LE(done, total);
      return left-- != 0;
    });
    EXPECT_EQ(g.finish, Finish::cancelled);
    EXPECT_TRUE(g.tokens.empty());
    const Request next = request(190, i % 2 == 0 ? i : 50);
    expect_same(engine.generate(next), fresh_answer(next));
  }
}

TEST_P(Generate, ARequestCancelledWhileItAnswersLeavesNoTrace) {
  for (uint32_t i = 1; i <= 8; ++i) {
    SCOPED_TRACE(fmt::format("seed {}", kBaseSeed + i));
    const Request r = request(60, i, 30);
    uint32_t left = i % 5, calls_after = 0;
    bool cancelled = false;
    const Generation g = engine.generate(r, [&](const CycleEvent&) {
      calls_after += cancelled;
      cancelled = cancelled || left-- == 0;
      return !cancelled;
    });
    if (cancelled) {
      EXPECT_EQ(g.finish, g.tokens.size() < 30 ? Finish::cancelled : Finish::length) << "a complete answer is not cancelled";
    }
    EXPECT_EQ(calls_after, 0u) << "a reader that wants no more is left alone";
    const auto& want = fresh_answer(r).tokens;
    EXPECT_TRUE(std::equal(g.tokens.begin(), g.tokens.end(), want.begin()));
    expect_same(engine.generate(r), fresh_answer(r));
    const Request next = request(80, i + 1);
    expect_same(engine.generate(next), fresh_answer(next));
  }
}

TEST_P(Generate, EveryCycleIsReportedOnceWithWhatItAdded) {
  Request r = request(50, 12, 30);
  r.top_logprobs = 3;
  std::vector<int32_t> ids;
  std::string text;
  size_t cycles = 0;
  const Generation g = engine.generate(r, [&](const CycleEvent& cycle) {
    ++cycles;
    EXPECT_EQ(cycle.tokens.size(), cycle.cycle.emitted);
    EXPECT_EQ(cycle.logprobs.size(), cycle.tokens.size());
    for (size_t i = 0; i < cycle.tokens.size(); ++i) {
      const PositionLogprobs& l = cycle.logprobs[i];
      EXPECT_EQ(l.chosen.token, cycle.tokens[i]);
      EXPECT_EQ(l.top.size(), 3u);
      EXPECT_GE(l.top[0].logprob, l.top[1].logprob);
      EXPECT_LE(l.chosen.logprob, l.top[0].logprob);
      EXPECT_LE(std::exp(l.top[0].logprob) + std::exp(l.top[1].logprob) + std::exp(l.top[2].logprob), 1.0001);
    }
    ids.insert(ids.end(), cycle.tokens.begin(), cycle.tokens.end());
    text += cycle.text;
    return true;
  });
  EXPECT_EQ(cycles, g.cycles.size());
  EXPECT_EQ(ids, g.tokens);
  EXPECT_EQ(text, g.text);
  expect_same(g, fresh_answer(request(50, 12, 30)));
}

// A synthetic byte vocabulary has control tokens only below 4: with a bias that forces one, no token carries text.
TEST_P(Generate, CyclesWithoutTextAreReportedToo) {
  Request r = request(20, 13, 60);
  r.ignore_eos = true;
  r.sampling = {.logit_bias = {{0, 1000.0f}}};
  size_t calls = 0;
  const Generation g = engine.generate(r, [&](const CycleEvent& cycle) {
    EXPECT_EQ(cycle.text, "");
    return ++calls < 2;
  });
  EXPECT_EQ(calls, 2u);
  EXPECT_EQ(g.finish, Finish::cancelled);
}

TEST_P(Generate, AReaderThatThrowsEndsTheRequestAndNothingElse) {
  struct Broken {};
  for (uint32_t i = 0; i < 4; ++i) {
    const Request r = request(40, i + 1);
    EXPECT_THROW(engine.generate(r, [](const CycleEvent&) -> bool { throw Broken(); }), Broken);
    EXPECT_THROW(engine.generate(r, nullptr, [](uint32_t, uint32_t) -> bool { throw Broken(); }), Broken);
    expect_same(engine.generate(r), fresh_answer(r));
  }
}

TEST_P(Generate, StopStringsEndTheSameTextAnywhere) {
  const Request all = request(30, 3, 30);
  const std::string text = fresh_answer(all).text;
  ASSERT_GT(text.size(), 20u);
  for (size_t at = 0; at + 3 <= 20; ++at) {
    Request r = all;
    r.stop = {text.substr(at, 3)};
    const Generation g = engine.generate(r);
    EXPECT_EQ(g.finish, Finish::stop);
    EXPECT_EQ(g.text, text.substr(0, text.find(r.stop[0])));
  }
}

TEST_P(Generate, AFullContextSaysSo) {
  Request r = request(kContext - 5, 4, 0);
  r.ignore_eos = true;
  const Generation g = engine.generate(r);
  EXPECT_EQ(g.finish, Finish::context);
  EXPECT_EQ(g.tokens.size(), 5u);
  EXPECT_EQ(g.tokens, Engine(options()).generate(r).tokens);
  r.prompt = tokens(kContext, 4);
  EXPECT_THROW(engine.generate(r), Error);
  const Request next = request(30, 5);
  expect_same(engine.generate(next), fresh_answer(next));
}

TEST_P(Generate, LogitsAndRefusedRequestsLeaveNoTrace) {
  const Request r = request(70, 6);
  expect_same(engine.generate(r), fresh_answer(r));
  uint32_t rows = 0;
  engine.logits(tokens(50, 9), [&](uint32_t position, std::span<const float> row) {
    EXPECT_EQ(position, rows++);
    EXPECT_EQ(row.size(), 320u);
  });
  EXPECT_EQ(rows, 50u);
  Request bad = r;
  bad.prompt[3] = 320;
  EXPECT_THROW(engine.generate(bad), Error);
  bad = r;
  bad.sampling.temperature = -1.0f;
  EXPECT_THROW(engine.generate(bad), Error);
  EXPECT_THROW(engine.logits(bad.prompt, [](uint32_t, std::span<const float>) { throw std::runtime_error("full"); }), std::runtime_error);
  expect_same(engine.generate(r), fresh_answer(r));
}

INSTANTIATE_TEST_SUITE_P(Drafts, Generate, testing::Values("none", "ngram", "model:synth:tiny:q4_0", "model:synth:tiny-256:q8_0:3"));

// A model whose token 7 is NaN, from a file.
class GenerateNonfinite : public testing::Test {
 protected:
  void SetUp() override {
    test::PatchedSource source("synth:tiny-gqa:f32");
    source.floats("token_embd.weight")[7 * 96] = NAN;
    write_gguf(source, path, {.overwrite = true, .progress = nullptr});
  }
  void TearDown() override { std::filesystem::remove(path); }

  const std::string path = testing::TempDir() + fmt::format("stet_nan_{}.gguf", getpid());
};

TEST_F(GenerateNonfinite, NamesTheCommandAndGoesOn) {
  for (const char* draft : {"none", "ngram"}) {
    Options o = options(draft);
    o.model = path;
    Engine engine(o);
    Request good = request(40, 1);
    good.prompt = tokens(40, 1, 300);
    std::ranges::replace(good.prompt, 7, 8);
    good.sampling.logit_bias[7] = -1000.0f;
    const Generation want = engine.generate(good);
    Request bad = good;
    bad.prompt[20] = 7;
    for (int i = 0; i < 2; ++i) {
      try {
        engine.generate(bad);
        FAIL() << "NaN was sampled from";
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), Code::kInput);
        EXPECT_NE(std::string_view(e.what()).find("token_embd"), std::string_view::npos) << e.what();
      }
      expect_same(engine.generate(good), want);
    }
    // A reader that gives up while the command is looked for.
    uint32_t passes = 0;
    EXPECT_EQ(engine.generate(bad, nullptr, [&](uint32_t, uint32_t) { return ++passes <= 3; }).finish, Finish::cancelled);
    expect_same(engine.generate(good), want);
  }
}

}  // namespace
}  // namespace stet
