// What is asked, whichever face it came by: one type from the body to the loop.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/api/fields.h"
#include "stet/engine.h"

namespace stet {

// What a request is checked against.
struct ModelLimits {
  uint32_t vocab = 0;    // token ids are below this
  uint32_t context = 0;  // prompt and answer together

  static ModelLimits of(const Engine& engine) { return {engine.vocab(), engine.info().context}; }
};

using Conversation = std::vector<ChatMessage>;
using TokenIds = std::vector<int32_t>;

struct ApiRequest {
  std::variant<std::monostate, std::string, TokenIds, Conversation> prompt;  // as it was asked; monostate: not at all
  std::string prompt_field;                                                  // "messages", "prompt"
  std::optional<bool> thinking;  // of a conversation: reason before the answer; nothing: as the model does by itself
  Request request;               // its prompt is filled in by tokenize_prompt()
  bool sampled() const { return request.sampling.temperature > 0.0f; }
  bool stream = false;
  bool include_usage = false;     // a last chunk with the usage
  bool return_token_ids = false;  // vLLM's: ids beside the text
  bool cycle_events = false;      // what each cycle did, beside the text
  Hints hints;                    // fields that change nothing
};

// Bodies of POST /v1/chat/completions and /v1/completions. Throw ApiError(400), which names the field. What they return
// is valid for the model: ranges, ids, stop texts. A seed is drawn where a sampled answer has none.
ApiRequest read_chat_request(std::string_view body, const ModelLimits& limits);
ApiRequest read_completion_request(std::string_view body, const ModelLimits& limits);

// Fills in the ids of the prompt. Throws ApiError(400) when there are none, when they leave no room for an answer, when
// the model has no template or vocabulary, and when the template refuses or drops a message.
void tokenize_prompt(ApiRequest& request, const Engine& engine);

// vLLM's POST /tokenize and /detokenize.
struct TokenizeRequest {
  std::variant<std::monostate, std::string, Conversation> prompt;
  std::optional<bool> add_special_tokens;  // of a text: begin with the token that begins one, unless false
  bool add_generation_prompt = true;
  std::optional<bool> thinking;
  bool return_token_strs = false;
  Hints hints;
};
TokenizeRequest read_tokenize_request(std::string_view body);
TokenIds read_detokenize_request(std::string_view body, const ModelLimits& limits, Hints& hints);

// Ids of a conversation, or of a text. Throw as tokenize_prompt() does.
TokenIds tokenize_conversation(const Engine& engine, const Conversation& messages, bool add_generation_prompt = true,
                               std::optional<bool> thinking = {});
TokenIds tokenize_text(const Engine& engine, const std::string& text, bool add_special_tokens, std::string_view field);

// Names of all fields that the tables know, by endpoint: for the test that holds docs/api.md to them.
struct KnownField {
  std::string_view endpoint, name;
  FieldKind kind;
};
std::vector<KnownField> known_fields();

}  // namespace stet
