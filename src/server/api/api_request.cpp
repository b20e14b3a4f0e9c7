#include "server/api/api_request.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "server/api/api_error.h"
#include "server/api/json_body.h"
#include "server/api/messages.h"
#include "server/api/raw_request.h"

namespace stet {
namespace {

uint32_t cut(uint64_t tokens) { return static_cast<uint32_t>(std::min<uint64_t>(tokens, UINT32_MAX)); }

void settle_length(RawRequest& r) {
  if (r.max_tokens && r.max_completion_tokens && *r.max_tokens != *r.max_completion_tokens)
    refuse("max_completion_tokens",
           "max_tokens is {} and max_completion_tokens is {}: they mean the same; give one of them", *r.max_tokens,
           *r.max_completion_tokens);
  // More than what fits into the context ends when that is full.
  if (const auto& given = r.max_completion_tokens ? r.max_completion_tokens : r.max_tokens)
    r.out.request.max_tokens = cut(*given);
}

void settle_logprobs(RawRequest& r) {
  if (r.logprobs.has_value() && !*r.logprobs && r.top_logprobs.value_or(0) > 0)
    refuse("top_logprobs", "top_logprobs is {}, but logprobs is false: set logprobs to true", *r.top_logprobs);
  r.out.request.top_logprobs = r.top_logprobs;
}

// In the chat form logprobs is a switch, without which top_logprobs means nothing.
void settle_chat_logprobs(RawRequest& r) {
  if (!r.logprobs && r.top_logprobs.value_or(0) > 0)
    refuse("top_logprobs", "top_logprobs needs logprobs: set logprobs to true");
  settle_logprobs(r);
  if (!r.logprobs.value_or(false)) r.out.request.top_logprobs.reset();
  if (r.logprobs.value_or(false) && !r.top_logprobs) r.out.request.top_logprobs = 0;
}

void settle_stream(const RawRequest& r) {
  if (r.out.stream) return;
  if (r.has_stream_options) refuse("stream_options", "stream_options needs stream: set stream to true");
  if (r.out.cycle_events) refuse("cycle_events", "cycle_events needs stream: set stream to true");
}

void settle_seed(RawRequest& r) {
  if (r.out.sampled()) r.out.request.sampling.seed = r.seed ? *r.seed : draw_seed();
}

RawRequest read_raw(std::string_view body, const ModelLimits& limits, const RequestFields& table) {
  const nlohmann::json json = parse_json_body(body);
  RawRequest raw{.limits = limits,
                 .out = {},
                 .seed = {},
                 .max_tokens = {},
                 .max_completion_tokens = {},
                 .logprobs = {},
                 .top_logprobs = {}};
  read_fields(FieldValue(json, ""), table, raw, raw.out.hints);
  settle_length(raw);
  settle_stream(raw);
  settle_seed(raw);
  return raw;
}

// What the text of a request does to the tokenizer or the template is the request's fault.
template <typename Tokenize>
TokenIds blaming(std::string_view field, const Tokenize& tokenize) {
  try {
    return tokenize();
  } catch (const Error& error) {
    if (error.code() == Code::kInternal || error.code() == Code::kResource) throw;
    refuse(field, "{}", shortened(error.what(), 1000));
  }
}

}  // namespace

ApiRequest read_chat_request(std::string_view body, const ModelLimits& limits) {
  RawRequest raw = read_raw(body, limits, chat_fields());
  settle_chat_logprobs(raw);
  if (raw.no_reasoning && raw.out.thinking.value_or(false))
    refuse("reasoning_effort", "reasoning_effort is \"none\", but chat_template_kwargs asks for reasoning");
  if (std::holds_alternative<std::monostate>(raw.out.prompt)) refuse("messages", "messages is missing");
  return std::move(raw.out);
}

ApiRequest read_completion_request(std::string_view body, const ModelLimits& limits) {
  RawRequest raw = read_raw(body, limits, completion_fields());
  settle_logprobs(raw);
  if (std::holds_alternative<std::monostate>(raw.out.prompt)) refuse("prompt", "prompt is missing");
  return std::move(raw.out);
}

TokenIds tokenize_conversation(const Engine& engine, const Conversation& messages, bool add_generation_prompt,
                               std::optional<bool> thinking) {
  if (!engine.has_vocabulary() || !engine.has_chat_template())
    refuse("messages", "the model has no {}, so it takes no messages: use /v1/completions",
           engine.has_vocabulary() ? "chat template" : "vocabulary");
  return blaming("messages", [&] { return engine.tokenize_chat(messages, add_generation_prompt, thinking); });
}

TokenIds tokenize_text(const Engine& engine, const std::string& text, bool add_special_tokens, std::string_view field) {
  if (!engine.has_vocabulary()) refuse(field, "the model has no vocabulary: send token ids");
  return blaming(field, [&] { return engine.tokenize(text, add_special_tokens); });
}

void tokenize_prompt(ApiRequest& request, const Engine& engine) {
  TokenIds& ids = request.request.prompt;
  if (auto* messages = std::get_if<Conversation>(&request.prompt)) {
    ids = tokenize_conversation(engine, *messages, true, request.thinking);
  } else if (auto* text = std::get_if<std::string>(&request.prompt)) {
    ids = tokenize_text(engine, *text, true, request.prompt_field);
  } else {
    ids = std::get<TokenIds>(request.prompt);
  }
  if (ids.empty()) refuse(request.prompt_field, "{} holds no tokens: at least one is needed", request.prompt_field);
  const uint32_t context = engine.info().context;
  if (ids.size() >= context) throw error_context(ids.size(), context, request.prompt_field);
}

std::vector<KnownField> known_fields() {
  std::vector<KnownField> out;
  add_known(out, "/v1/chat/completions", chat_fields());
  add_known(out, "/v1/completions", completion_fields());
  add_known_tokenize_fields(out);
  return out;
}

}  // namespace stet
