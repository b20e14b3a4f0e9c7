#include "spec/draft.h"

#include <array>

#include "base/error.h"
#include "models/draft_desc.h"

namespace stet {

// src/spec/drafts/<name>.cpp
#define DRAFT(name, history) std::unique_ptr<Draft> make_draft_##name(const DraftContext& context);
#define OWN_DRAFT(name) DRAFT(name, false)
#include "spec/drafts.def"
#undef DRAFT
#undef OWN_DRAFT

const DraftKind& draft_kind(std::string_view text) {
  static constexpr std::array kinds = {
      DraftKind{"none", false, nullptr, false},
#define DRAFT(name, history) DraftKind{#name, history, make_draft_##name, false},
#define OWN_DRAFT(name) DraftKind{#name, false, make_draft_##name, true},
#include "spec/drafts.def"
#undef DRAFT
#undef OWN_DRAFT
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

bool is_own_draft(std::string_view name) {
#define DRAFT(id, history)
#define OWN_DRAFT(id) \
  if (name == #id) return true;
#include "spec/drafts.def"
#undef DRAFT
#undef OWN_DRAFT
  return false;
}

void check_own_draft(std::string_view name, const DraftContext& context) {
  if (!context.argument.empty())
    fail(Code::kUsage, "the draft '{}' takes no argument, but got '{}'", name, context.argument);
  check_own_draft(name, context.target);
  STET_CHECK(context.decoder != nullptr && &context.decoder->desc() == &context.target);
}

void check_own_draft(std::string_view name, const ModelDesc& target) {
  if (target.draft == nullptr)
    fail(Code::kUnsupported,
         "the draft '{}' is made of blocks of the model's own checkpoint (mtp.*), and this one has none: use another "
         "--draft",
         name);
  if (target.draft->kind != name)
    fail(Code::kUnsupported, "the model's checkpoint has no blocks of the draft '{}' but those of another: --draft {}",
         name, target.draft->kind);
}

}  // namespace stet
