// Prompt lookup: finds the latest earlier place where the last tokens already stood, and proposes what followed there.
// (Saxena, "Prompt lookup decoding", 2023.) It learns from the text itself, so its rate is history-accelerated.
#include <algorithm>

#include "base/error.h"
#include "spec/draft.h"

namespace stet {
namespace {

constexpr uint32_t kLongest = 4, kShortest = 2;  // tokens that have to match
constexpr uint32_t kWindow = 1u << 14;           // tokens looked back over, so that a long context costs no more

class NgramDraft : public Draft {
 public:
  void propose(const SessionView& view, uint32_t depth, std::vector<int32_t>& proposals) override {
    const auto& tokens = view.tokens;
    for (uint32_t n = kLongest; n >= kShortest; --n) {
      if (tokens.size() <= n) continue;
      const size_t pattern = tokens.size() - n;
      const size_t oldest = pattern > kWindow ? pattern - kWindow : 0;
      for (size_t at = pattern; at-- > oldest;) {
        if (!std::equal(tokens.begin() + static_cast<ptrdiff_t>(pattern), tokens.end(), tokens.begin() + static_cast<ptrdiff_t>(at)))
          continue;
        for (size_t i = at + n; i < tokens.size() && proposals.size() < depth; ++i) proposals.push_back(tokens[i]);
        return;
      }
    }
  }
  DeviceDraft on_device() override { return {.kind = DeviceDraft::Kind::ngram}; }
};

}  // namespace

std::unique_ptr<Draft> make_draft_ngram(const DraftContext& context) {
  if (!context.argument.empty()) fail(Code::kUsage, "the draft 'ngram' takes no argument, but got '{}'", context.argument);
  return std::make_unique<NgramDraft>();
}

}  // namespace stet
