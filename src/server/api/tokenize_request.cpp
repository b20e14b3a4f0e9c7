#include <nlohmann/json.hpp>

#include "server/api/api_error.h"
#include "server/api/api_request.h"
#include "server/api/json_body.h"
#include "server/api/messages.h"
#include "server/api/raw_request.h"

namespace stet {
namespace {

using V = const FieldValue&;

struct Detokenize {
  uint32_t vocab = 0;
  std::optional<TokenIds> tokens;
};

const std::vector<Field<TokenizeRequest>>& tokenize_fields() {
  using R = TokenizeRequest;
  static const std::vector<Field<R>> table = {
      honoured<R>("model", [](V v, R&) { v.text(); }),
      honoured<R>("prompt",
                  [](V v, R& r) {
                    if (!std::holds_alternative<std::monostate>(r.prompt))
                      refuse(v.path(), "give either prompt or messages");
                    r.prompt = v.text();
                  }),
      honoured<R>("messages",
                  [](V v, R& r) {
                    if (!std::holds_alternative<std::monostate>(r.prompt))
                      refuse(v.path(), "give either prompt or messages");
                    r.prompt = read_messages(v, r.hints);
                  }),
      honoured<R>("add_special_tokens", [](V v, R& r) { r.add_special_tokens = v.boolean(); }),
      honoured<R>("add_generation_prompt", [](V v, R& r) { r.add_generation_prompt = v.boolean(); }),
      honoured<R>("return_token_strs", [](V v, R& r) { r.return_token_strs = v.boolean(); }),
      unless<R>("continue_final_message", "[false]"),
      unless<R>("chat_template", "[]", "the model's own template is used"),
      honoured<R>("chat_template_kwargs", [](V v, R& r) { r.thinking = read_thinking(v, r.hints); }),
      unless<R>("tools", "[[]]"),
  };
  return table;
}

const std::vector<Field<Detokenize>>& detokenize_fields() {
  using R = Detokenize;
  static const std::vector<Field<R>> table = {
      honoured<R>("model", [](V v, R&) { v.text(); }),
      honoured<R>("tokens", [](V v, R& r) { r.tokens = v.token_ids(r.vocab); }),
  };
  return table;
}

}  // namespace

TokenizeRequest read_tokenize_request(std::string_view body) {
  const nlohmann::json json = parse_json_body(body);
  TokenizeRequest request;
  read_fields(FieldValue(json, ""), tokenize_fields(), request, request.hints);
  if (std::holds_alternative<std::monostate>(request.prompt)) refuse("prompt", "neither prompt nor messages is given");
  if (std::holds_alternative<Conversation>(request.prompt) && request.add_special_tokens.value_or(false))
    refuse("add_special_tokens",
           "add_special_tokens is true, but the chat template writes the special tokens: leave it out");
  if (std::holds_alternative<std::string>(request.prompt) && request.thinking)
    refuse("chat_template_kwargs", "chat_template_kwargs is about messages, and prompt is a text: leave it out");
  return request;
}

TokenIds read_detokenize_request(std::string_view body, const ModelLimits& limits, Hints& hints) {
  const nlohmann::json json = parse_json_body(body);
  Detokenize request{.vocab = limits.vocab, .tokens = {}};
  read_fields(FieldValue(json, ""), detokenize_fields(), request, hints);
  if (!request.tokens) refuse("tokens", "tokens is missing");
  return *request.tokens;
}

void add_known_tokenize_fields(std::vector<KnownField>& out) {
  add_known(out, "/tokenize", tokenize_fields());
  add_known(out, "/detokenize", detokenize_fields());
}

}  // namespace stet
