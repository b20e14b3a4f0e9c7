// From a row of logits to a token: a pure function of (logits, prompt, output so far, parameters, seed, absolute
// position), so that the token the verifier computes for a row is the token that the plain decoder would have sampled.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "spec/candidates.h"
#include "spec/token_counts.h"

namespace stet {

struct SamplingParams {
  float temperature = 0.0f;         // 0: greedy, and top_k, top_p, min_p and seed play no part
  uint32_t top_k = 0;               // 0: off
  float top_p = 1.0f;               // 1: off
  float min_p = 0.0f;               // 0: off
  float repetition_penalty = 1.0f;  // 1: off
  float presence_penalty = 0.0f;    // 0: off
  float frequency_penalty = 0.0f;   // 0: off
  uint64_t seed = 0;
  std::map<int32_t, float> logit_bias = {};  // token id -> what is added to its logit

  // Throws Error(kUsage) that names the flag, its value and what is allowed.
  void validate(uint32_t vocab) const;
};

// A seed nobody chose, for a request without one; report it, because the output depends on it. Below 2^53, so that
// every reader of JSON keeps it. Throws Error(kResource) when the system has no random numbers.
uint64_t draw_seed();

struct SampleResult {
  int32_t token;  // -1 when a logit is not finite: such a step commits nothing
  uint32_t
      first_bad;  // the first logit, after bias and penalties, that is infinite or NaN; the size of the row if none is
  bool ok() const { return token >= 0; }
};

class Sampler {
 public:
  // Validates params. kernels outlives the sampler.
  Sampler(const Kernels& kernels, const SamplingParams& params, uint32_t vocab);

  // logits: (vocab), not written to. prompt and output: the ids before this row; in a verify pass output ends with the
  // draft's tokens that precede the row. position: absolute, of the token that is sampled. In this order, all in f32 as
  // written:
  // - bias: l + b;
  // - penalties, once per token that occurs: in prompt or output, l / r if l > 0, else l * r (repetition); in the
  // output,
  //   (l - frequency * count) - presence;
  // - temperature: x = (l - max) / temperature; at 0 the token with the largest l is the result;
  // - top-k, top-p, min-p: candidates.h;
  // - the token with the largest x + g, g being Gumbel noise of (seed, position, id): kernels/sample/sample.h.
  // Ties go to the lowest id. Allocates nothing after the first call (TokenCounts says up to which length).
  SampleResult sample(const float* logits, std::span<const int32_t> prompt, std::span<const int32_t> output,
                      uint64_t position);

  const SamplingParams& params() const { return params_; }

 private:
  const float* adjusted(const float* logits, std::span<const int32_t> prompt, std::span<const int32_t> output);
  void penalize(int32_t id);

  const SampleKernels& kernels_;
  const SamplingParams params_;
  const uint32_t vocab_;
  std::optional<TokenCounts> counts_;  // where a penalty needs them
  Candidates candidates_;
  std::vector<float> row_;  // the logits after bias and penalties, where there are any
};

}  // namespace stet
