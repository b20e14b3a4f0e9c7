#include "text/encodings/prompt_encoding.h"

#include "base/error.h"
#include "base/visible_text.h"

namespace stet {
namespace {

struct Entry {
  std::string_view name;
  PromptEncoding (*make)();
};
constexpr Entry kEncodings[] = {
#define ENCODING(id) {#id, prompt_encoding_##id},
#include "text/encodings/encodings.def"
#undef ENCODING
};

}  // namespace

PromptEncoding find_prompt_encoding(std::string_view name) {
  std::string known;
  for (const Entry& e : kEncodings) {
    if (e.name == name) return e.make();
    known += (known.empty() ? "" : ", ") + std::string(e.name);
  }
  fail(Code::kUnsupported, "there is no encoding of prompts '{}' (tokenizer.chat_encoding); there are: {}",
       shown_name(std::string(name)), known);
}

}  // namespace stet
