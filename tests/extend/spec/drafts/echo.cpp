// Proposes that the last token goes on for ever.
#include "base/error.h"
#include "spec/draft.h"

namespace stet {
namespace {

class EchoDraft : public Draft {
 public:
  void propose(const SessionView& view, uint32_t depth, std::vector<int32_t>& proposals) override {
    proposals.insert(proposals.end(), depth, view.tokens.back());
  }
};

}  // namespace

std::unique_ptr<Draft> make_draft_echo(const DraftContext& context) {
  if (!context.argument.empty()) fail(Code::kUsage, "the draft 'echo' takes no argument, but got '{}'", context.argument);
  return std::make_unique<EchoDraft>();
}

}  // namespace stet
