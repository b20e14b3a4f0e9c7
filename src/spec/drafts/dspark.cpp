// The blocks that a checkpoint of DeepSeek V4 brings along to guess several tokens at once: all places in one pass,
// then one after the other by what stands before each. Samples with the target's parameters and noise, as the draft
// "model" does.
#include "base/error.h"
#include "spec/draft.h"
#include "state/draft_passes.h"

namespace stet {
namespace {

class DSparkDraft : public Draft {
 public:
  explicit DSparkDraft(const DraftContext& c)
      : passes_(*c.decoder, c.arm), kernels_(c.kernels), vocab_(c.target.vocab) {
    begin({});
  }

  void begin(const SamplingParams& sampling) override {
    sampler_ = std::make_unique<Sampler>(kernels_, sampling, vocab_);
  }

  void propose(const SessionView& view, uint32_t depth, std::vector<int32_t>& proposals) override {
    confidences_.clear();
    // The target has to have run all tokens but the last, and one at least.
    const uint32_t n = static_cast<uint32_t>(view.tokens.size());
    if (n < 2 || view.cached_tokens + 1 != n || depth == 0) return;
    std::vector<int32_t> timeline(view.tokens.begin(), view.tokens.end());
    passes_.block(timeline.back(), depth, n - 1);
    for (uint32_t i = 0; i < depth; ++i) {
      const DSparkPasses::Choice choice = passes_.choose(i, timeline.back());
      const auto all = std::span<const int32_t>(timeline);
      const SampleResult r = sampler_->sample(choice.logits, all.first(view.prompt_tokens),
                                              all.subspan(view.prompt_tokens), timeline.size());
      // A draft that leaves the finite numbers has nothing to propose; the target is not affected.
      if (!r.ok()) return;
      proposals.push_back(r.token);
      confidences_.push_back(choice.confidence);
      timeline.push_back(r.token);
    }
  }

  std::span<const float> confidences() const override { return confidences_; }

 private:
  DSparkPasses passes_;
  const Kernels& kernels_;
  const uint32_t vocab_;
  std::unique_ptr<Sampler> sampler_;
  std::vector<float> confidences_;
};

}  // namespace

std::unique_ptr<Draft> make_draft_dspark(const DraftContext& c) {
  check_own_draft("dspark", c);
  return std::make_unique<DSparkDraft>(c);
}

}  // namespace stet
