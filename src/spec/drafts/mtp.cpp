// The block that a checkpoint of DeepSeek V4 brings along to guess the token after the next one. Beyond the first
// proposal it goes on from its own streams.
#include <algorithm>

#include "base/error.h"
#include "spec/sampling_draft.h"
#include "state/draft_passes.h"

namespace stet {
namespace {

class MtpDraft : public SamplingDraft {
 public:
  explicit MtpDraft(const DraftContext& c) : SamplingDraft(c), passes_(*c.decoder, c.arm) {}

  void propose(const SessionView& view, uint32_t depth, std::vector<int32_t>& proposals) override {
    // The target has to have run all tokens but the last, and one at least.
    const uint32_t n = static_cast<uint32_t>(view.tokens.size());
    if (n < 2 || view.cached_tokens + 1 != n) return;
    catch_up(view.tokens);
    std::vector<int32_t> timeline(view.tokens.begin(), view.tokens.end());
    const float* logits = passes_.first(timeline.back(), n - 2);
    end_ = n - 1;
    for (uint32_t i = 0; i < depth; ++i) {
      // What stands at these positions are guesses, and end_ is not moved.
      if (i > 0) logits = passes_.next(timeline.back(), n - 2 + i);
      if (!sample(logits, view.prompt_tokens, timeline, proposals)) return;
    }
  }

 private:
  // Rows before that of the last token's predecessor, as far back as its window: a row depends on the tokens up to the
  // one behind it, and on nothing else.
  void catch_up(std::span<const int32_t> tokens) {
    const uint32_t last = static_cast<uint32_t>(tokens.size()) - 2;
    uint32_t common = 0;
    const size_t most = std::min(seen_.size(), tokens.size());
    while (common < most && seen_[common] == tokens[common]) ++common;
    end_ = std::min({end_, common == 0 ? 0 : common - 1, last});
    const uint32_t oldest = last + 1 < passes_.window() ? 0 : last + 1 - passes_.window();
    if (oldest < first_ || end_ < oldest) first_ = end_ = oldest;
    seen_.assign(tokens.begin(), tokens.end());
    if (end_ < last) passes_.rows(tokens.subspan(end_ + 1, last - end_), end_);
    end_ = last;
  }

  MtpPasses passes_;
  // Rows first_ .. end_ - 1 of the block are those of seen_.
  std::vector<int32_t> seen_;
  uint32_t first_ = 0, end_ = 0;
};

}  // namespace

std::unique_ptr<Draft> make_draft_mtp(const DraftContext& c) {
  check_own_draft("mtp", c);
  return std::make_unique<MtpDraft>(c);
}

}  // namespace stet
