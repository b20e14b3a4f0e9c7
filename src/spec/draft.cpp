#include "spec/draft.h"

#include <array>

#include "base/error.h"

namespace stet {

// src/spec/drafts/<name>.cpp
#define DRAFT(name, history) std::unique_ptr<Draft> make_draft_##name(const DraftContext& context);
#include "spec/drafts.def"
#undef DRAFT

const DraftKind& draft_kind(std::string_view text) {
  static constexpr std::array kinds = {
      DraftKind{"none", false, nullptr},
#define DRAFT(name, history) DraftKind{#name, history, make_draft_##name},
#include "spec/drafts.def"
#undef DRAFT
  };
  const std::string_view name = text.substr(0, text.find(':'));
  std::string all;
  for (const DraftKind& kind : kinds) {
    if (kind.name == name) return kind;
    all += (all.empty() ? "" : ", ") + std::string(kind.name);
  }
  fail(Code::kUsage, "there is no draft '{}'; choose one of: {} (model takes a file: model:FILE)", text, all);
}

std::string draft_argument(std::string_view text) {
  const size_t colon = text.find(':');
  return colon == std::string_view::npos ? "" : std::string(text.substr(colon + 1));
}

}  // namespace stet
