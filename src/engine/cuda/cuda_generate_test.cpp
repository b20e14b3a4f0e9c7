// Requests to an engine on the GPU, whose cycles stay there, against the same requests to one on the processor.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "engine/cuda/cuda_requests_test.h"
#include "engine/parts.h"
#include "weights/gguf_writer.h"
#include "weights/patched_source_test.h"

namespace stet {
namespace {

using test::expect_equal;
using test::request_of;

constexpr uint32_t kContext = 400;

Options options_on(const std::string& device, const std::string& draft) {
  Options o;
  o.model = "synth:tiny:q4_0";
  o.threads = 2;
  o.context = kContext;
  o.pack = "none";
  o.draft = draft;
  o.draft_depth = 6;
  o.qualify = false;
  o.device = device;
  return o;
}

class CudaGenerate : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const CudaDevices devices = cuda_devices();
    if (devices.devices.empty()) GTEST_SKIP() << "skipped: no GPU (" << devices.why_none << ")";
    cpu.emplace(options_on("cpu", GetParam()));
    cuda.emplace(options_on("cuda", GetParam()));
    ASSERT_NE(cuda->parts().cycles, nullptr);
  }
  // Both, one after the other: their caches have seen the same.
  void expect_the_same(const Request& r) { expect_equal(cuda->generate(r), cpu->generate(r)); }

  std::optional<Engine> cpu, cuda;
};

TEST_P(CudaGenerate, HasTheAnswersOfTheProcessor) {
  for (uint32_t seed = 1; seed <= 9; ++seed) {
    SCOPED_TRACE(seed);
    expect_the_same(request_of(seed == 4 ? 1 : 20 + 17 * seed, seed));
    EXPECT_EQ(cuda->parts().session->state_hash(), cpu->parts().session->state_hash());
  }
  Request again = request_of(20 + 17 * 9, 9);
  again.prompt.push_back(7);  // a prefix is in the cache
  expect_the_same(again);
}

TEST_P(CudaGenerate, EndsWhereTheProcessorEnds) {
  for (uint32_t limit : {1u, 2u, 5u, 7u, 8u}) expect_the_same(request_of(30, limit, limit));
  Request full = request_of(kContext - 9, 4, 0);
  full.ignore_eos = true;
  expect_the_same(full);
  EXPECT_EQ(cpu->generate(full).finish, Finish::context);
  for (const int32_t control : {0, 1, 2, 3})
    for (const bool ignore : {false, true}) {
      Request r = request_of(25, 7, 12);
      r.sampling.logit_bias[control] = 12.0f;
      r.ignore_eos = ignore;
      expect_the_same(r);
    }
  const Request all = request_of(30, 3);
  expect_the_same(all);
  const std::string text = cpu->generate(all).text;
  ASSERT_GT(text.size(), 12u);
  for (size_t at = 0; at < 9; at += 2) {
    Request r = all;
    r.stop = {text.substr(at, 3)};
    expect_the_same(r);
    EXPECT_EQ(cuda->cached_tokens(), cpu->cached_tokens());
  }
}

TEST_P(CudaGenerate, RequestsThatEndEarlyLeaveNoTrace) {
  struct Broken {};
  for (uint32_t i = 0; i < 8; ++i) {
    const Request r = request_of(60, i + 1), next = request_of(70, i + 2);
    uint32_t left = i / 2;
    const auto some = [&left](const CycleEvent&) { return left-- != 0; };
    const Generation part = cuda->generate(r, some), whole = cpu->generate(r);
    EXPECT_EQ(part.cycles.size(), std::min<size_t>(i / 2 + 1, whole.cycles.size()));
    EXPECT_TRUE(std::equal(part.tokens.begin(), part.tokens.end(), whole.tokens.begin()));
    EXPECT_EQ(cuda->generate(r).tokens, whole.tokens);
    EXPECT_EQ(cuda->generate(next, nullptr, [](uint32_t, uint32_t) { return false; }).finish, Finish::cancelled);
    EXPECT_THROW(cuda->generate(next, [](const CycleEvent&) -> bool { throw Broken(); }), Broken);
    EXPECT_EQ(cuda->generate(next).tokens, cpu->generate(next).tokens);
  }
}

// These see logits, which are the host's: steps instead of cycles.
TEST_P(CudaGenerate, LogprobsAreThoseOfTheProcessor) {
  Request r = request_of(45, 5);
  for (int i = 0; i < 2; ++i) {
    r.top_logprobs.reset();
    expect_the_same(r);
    r.top_logprobs = 2;
    std::vector<float> got, want;
    const auto into = [](std::vector<float>& to) {
      return [&to](const CycleEvent& e) {
        for (const PositionLogprobs& l : e.logprobs) to.push_back(l.chosen.logprob), to.push_back(l.top[1].logprob);
        return true;
      };
    };
    EXPECT_EQ(cuda->generate(r, into(got)).tokens, cpu->generate(r, into(want)).tokens);
    EXPECT_EQ(got, want);
    EXPECT_FALSE(got.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Drafts, CudaGenerate,
                         testing::Values("none", "ngram", "model:synth:tiny:q4_0", "model:synth:tiny-256:q8_0:3"));

// A model whose token 7 is NaN, from a file.
TEST(CudaGenerateNonfinite, NamesTheCommandAndGoesOn) {
  if (const CudaDevices devices = cuda_devices(); devices.devices.empty())
    GTEST_SKIP() << "skipped: no GPU (" << devices.why_none << ")";
  const std::string path = testing::TempDir() + fmt::format("stet_cuda_nan_{}.gguf", getpid());
  test::PatchedSource source("synth:tiny-gqa:f32");
  source.floats("token_embd.weight")[7 * 96] = NAN;
  write_gguf(source, path, {.overwrite = true, .progress = nullptr});
  for (const char* draft : {"none", "ngram"}) {
    Options o = options_on("cuda", draft);
    o.model = path;
    Engine engine(o);
    Request good = request_of(40, 3);
    for (int32_t& t : good.prompt) t = t % 290 + 8;
    good.sampling.logit_bias[7] = -1000.0f;
    const Generation want = engine.generate(good);
    EXPECT_GT(want.tokens.size(), 0u);
    Request bad = good;
    bad.prompt[20] = 7;
    for (int i = 0; i < 2; ++i) {
      try {
        engine.generate(bad);
        ADD_FAILURE() << "NaN was sampled from";
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), Code::kInput);
        EXPECT_NE(std::string_view(e.what()).find("token_embd"), std::string_view::npos) << e.what();
      }
      EXPECT_EQ(engine.generate(good).tokens, want.tokens);
    }
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace stet
