// The blocks that a checkpoint of DeepSeek V4 brings along to guess several tokens at once: all places in one pass,
// then one after the other by what stands before each.
#include "base/error.h"
#include "spec/sampling_draft.h"
#include "state/draft_passes.h"

namespace stet {
namespace {

class DSparkDraft : public SamplingDraft {
 public:
  explicit DSparkDraft(const DraftContext& c) : SamplingDraft(c), passes_(*c.decoder, c.arm) {}

  void propose(const SessionView& view, uint32_t depth, std::vector<int32_t>& proposals) override {
    confidences_.clear();
    // The target has to have run all tokens but the last, and one at least.
    const uint32_t n = static_cast<uint32_t>(view.tokens.size());
    if (n < 2 || view.cached_tokens + 1 != n || depth == 0) return;
    std::vector<int32_t> timeline(view.tokens.begin(), view.tokens.end());
    passes_.block(timeline.back(), depth, n - 1);
    for (uint32_t i = 0; i < depth; ++i) {
      const DSparkPasses::Choice choice = passes_.choose(i, timeline.back());
      if (!sample(choice.logits, view.prompt_tokens, timeline, proposals)) return;
      confidences_.push_back(choice.confidence);
    }
  }

  std::span<const float> confidences() const override { return confidences_; }

 private:
  DSparkPasses passes_;
  std::vector<float> confidences_;
};

}  // namespace

std::unique_ptr<Draft> make_draft_dspark(const DraftContext& c) {
  check_own_draft("dspark", c);
  return std::make_unique<DSparkDraft>(c);
}

}  // namespace stet
