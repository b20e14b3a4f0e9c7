// A draft that has logits: it samples from them with the target's parameters and noise, so that it also agrees with a
// sampled answer as often as it can.
#pragma once

#include "spec/draft.h"

namespace stet {

class SamplingDraft : public Draft {
 public:
  explicit SamplingDraft(const DraftContext& c);
  void begin(const SamplingParams& sampling) override;

 protected:
  // Appends the token behind the timeline, which begins with the prompt, to it and to the proposals. False: the logits
  // are not finite, so there is nothing to propose; the target is not affected.
  bool sample(const float* logits, uint32_t prompt_tokens, std::vector<int32_t>& timeline,
              std::vector<int32_t>& proposals);

 private:
  const Kernels& kernels_;
  const uint32_t vocab_;  // the target's, which is the draft's
  std::unique_ptr<Sampler> sampler_;
};

}  // namespace stet
