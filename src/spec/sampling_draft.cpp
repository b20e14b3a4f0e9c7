#include "spec/sampling_draft.h"

namespace stet {

SamplingDraft::SamplingDraft(const DraftContext& c)
    : kernels_(c.kernels),
      vocab_(c.target.vocab),
      sampler_(std::make_unique<Sampler>(kernels_, SamplingParams{}, vocab_)) {}

void SamplingDraft::begin(const SamplingParams& sampling) {
  sampler_ = std::make_unique<Sampler>(kernels_, sampling, vocab_);
}

bool SamplingDraft::sample(const float* logits, uint32_t prompt_tokens, std::vector<int32_t>& timeline,
                           std::vector<int32_t>& proposals) {
  const auto all = std::span<const int32_t>(timeline);
  const SampleResult r =
      sampler_->sample(logits, all.first(prompt_tokens), all.subspan(prompt_tokens), timeline.size());
  if (!r.ok()) return false;
  proposals.push_back(r.token);
  timeline.push_back(r.token);
  return true;
}

}  // namespace stet
