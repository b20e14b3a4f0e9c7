// DeepSeek V4 in an engine on the GPU against one on the processor: whole cycles there, steps with a draft of its own, prefixes that are kept
// where rings allow it.
#include <gtest/gtest.h>

#include "engine/cuda/cuda_requests_test.h"
#include "engine/parts.h"

namespace stet {
namespace {

using test::expect_equal;
using test::request_of;

struct GenerateCase {
  const char *model, *draft, *activations, *kv, *replay;
};

Options options_of(const GenerateCase& c, const char* device) {
  Options o;
  o.model = c.model;
  o.draft = c.draft;
  o.activations = c.activations;
  o.kv = c.kv;
  o.replay = c.replay;
  o.threads = 2;
  o.context = 700;
  o.pack = "none";
  o.qualify = false;
  o.device = device;
  return o;
}

class CudaDeepseekGenerate : public testing::TestWithParam<GenerateCase> {};

TEST_P(CudaDeepseekGenerate, HasTheAnswersOfTheProcessor) {
  if (const CudaDevices devices = cuda_devices(); devices.devices.empty())
    GTEST_SKIP() << "skipped: no GPU (" << devices.why_none << ")";
  Engine cpu(options_of(GetParam(), "cpu")), cuda(options_of(GetParam(), "cuda"));
  const auto expect_the_same = [&](const Request& r) {
    expect_equal(cuda.generate(r), cpu.generate(r));
    EXPECT_EQ(cuda.parts().session->state_hash(), cpu.parts().session->state_hash());
  };
  for (const auto& [prompt, seed] : {std::pair{1u, 1u}, {40u, 2u}, {300u, 3u}, {140u, 4u}}) {
    SCOPED_TRACE(prompt);
    Request r = request_of(prompt, seed, 40);
    expect_the_same(r);
    // Another answer to the same question, and the next turn.
    r.sampling.seed += 100;
    expect_the_same(r);
    r.prompt.push_back(7);
    expect_the_same(r);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, CudaDeepseekGenerate,
    testing::Values(GenerateCase{"synth:deepseek-v4-mini", "none", "checkpoint", "f16", "replayed"},
                    GenerateCase{"synth:deepseek-v4-mini", "ngram", "checkpoint", "fp8", "replayed"},
                    GenerateCase{"synth:deepseek-v4-mini", "none", "f32", "f32", "eager"},
                    GenerateCase{"synth:deepseek-v4-mini", "ngram", "a8", "f16", "recorded"},
                    GenerateCase{"synth:deepseek-v4-mini-mtp", "mtp", "checkpoint", "fp8", "replayed"},
                    GenerateCase{"synth:deepseek-v4-mini-mtp", "mtp", "f32", "f32", "eager"},
                    GenerateCase{"synth:deepseek-v4-mini-dspark", "dspark", "checkpoint", "f16", "replayed"},
                    GenerateCase{"synth:deepseek-v4-mini-dspark", "dspark", "a8", "f32", "recorded"}));

}  // namespace
}  // namespace stet
