// The fields of chat and completion requests.
#include <nlohmann/json.hpp>

#include "server/api/api_error.h"
#include "server/api/messages.h"
#include "server/api/raw_request.h"

namespace stet {
namespace {

using V = const FieldValue&;
using Raw = RawRequest;

constexpr uint64_t kMaxTopLogprobs = 20;
constexpr std::string_view kNoTools = "this server does not run tools";

struct StreamOptions {
  bool include_usage = false;
};

void read_stream_options(V v, Raw& r) {
  static const std::vector<Field<StreamOptions>> table = {
      honoured<StreamOptions>("include_usage",
                              [](V value, StreamOptions& out) { out.include_usage = value.boolean(); }),
      unless<StreamOptions>("continuous_usage_stats", "[false]", "the usage comes in a chunk at the end"),
      hint<StreamOptions>("include_obfuscation"),
  };
  StreamOptions options;
  read_fields(v, table, options, r.out.hints);
  r.out.include_usage = options.include_usage;
  r.has_stream_options = true;
}

// A text, ids, or a list of one of these.
void read_prompt(V v, Raw& r) {
  r.out.prompt_field = v.path();
  if (v.is_text()) {
    r.out.prompt = v.text();
    return;
  }
  if (!v.is_list()) refuse(v.path(), "{} must be a string or an array of token ids", v.path());
  const nlohmann::json& list = v.json();
  if (list.empty()) refuse(v.path(), "{} is empty", v.path());
  if (list[0].is_number()) {
    r.out.prompt = v.token_ids(r.limits.vocab);
    return;
  }
  if (list.size() != 1) refuse(v.path(), "{} has {} entries; send one prompt a request", v.path(), list.size());
  const FieldValue only = v.items().front();
  if (only.is_text()) {
    r.out.prompt = only.text();
  } else {
    r.out.prompt = only.token_ids(r.limits.vocab);
  }
}

// Accepted where it says what happens anyway.
void read_reasoning_effort(V v, Raw& r) {
  refuse_unless_neutral(v, {.name = "reasoning_effort",
                            .kind = FieldKind::unless,
                            .neutral = R"(["none"])",
                            .advice = "chat_template_kwargs switches reasoning on"});
  r.no_reasoning = true;
}

RequestFields joined(RequestFields table) {
  for (const RequestFields& more : {common_fields(), sampling_fields()})
    table.insert(table.end(), more.begin(), more.end());
  return table;
}

}  // namespace

RequestFields common_fields() {
  return {
      honoured<Raw>("model", [](V v, Raw&) { v.text(); }),  // any name: there is one model
      honoured<Raw>("stream", [](V v, Raw& r) { r.out.stream = v.boolean(); }),
      honoured<Raw>("stream_options", read_stream_options),
      honoured<Raw>("return_token_ids", [](V v, Raw& r) { r.out.return_token_ids = v.boolean(); }),
      honoured<Raw>("cycle_events", [](V v, Raw& r) { r.out.cycle_events = v.boolean(); }),
      honoured<Raw>("cache_prompt", [](V v, Raw& r) { r.out.request.reuse_prefix = v.boolean(); }),
      unless<Raw>("n", "[1]", "send one request for each answer"),
      unless<Raw>("best_of", "[1]"),
      unless<Raw>("echo", "[false]", "join prompt and answer yourself"),
      unless<Raw>("return_tokens_as_token_ids", "[false]", "return_token_ids gives the ids"),
      hint<Raw>("user"),
      hint<Raw>("metadata"),
      hint<Raw>("service_tier"),
      hint<Raw>("prompt_cache_key"),
      hint<Raw>("prompt_cache_retention"),
      hint<Raw>("prompt_cache_options"),
      hint<Raw>("safety_identifier"),
      hint<Raw>("priority"),
      hint<Raw>("request_id"),
      hint<Raw>("cache_salt"),
      hint<Raw>("id_slot"),
  };
}

const RequestFields& chat_fields() {
  static const RequestFields table = joined({
      honoured<Raw>("messages",
                    [](V v, Raw& r) {
                      r.out.prompt_field = v.path();
                      r.out.prompt = read_messages(v, r.out.hints);
                    }),
      honoured<Raw>("max_completion_tokens", [](V v, Raw& r) { r.max_completion_tokens = v.whole(1, UINT64_MAX); }),
      honoured<Raw>("logprobs", [](V v, Raw& r) { r.logprobs = v.boolean(); }),
      honoured<Raw>("top_logprobs",
                    [](V v, Raw& r) { r.top_logprobs = static_cast<uint32_t>(v.whole(0, kMaxTopLogprobs)); }),
      unless<Raw>("tools", "[[]]", kNoTools),
      unless<Raw>("tool_choice", R"(["none"])", kNoTools),
      unless<Raw>("functions", "[[]]", kNoTools),
      unless<Raw>("function_call", R"(["none"])", kNoTools),
      unless<Raw>("response_format", R"([{"type": "text"}])", "ask for the format in the prompt"),
      unless<Raw>("audio", "[]", "the model writes text"),
      unless<Raw>("modalities", R"([["text"]])", "the model writes text"),
      unless<Raw>("prediction", "[]"),
      honoured<Raw>("reasoning_effort", read_reasoning_effort),
      unless<Raw>("verbosity", R"(["medium"])", "ask for it in the prompt"),
      unless<Raw>("web_search_options", "[]"),
      unless<Raw>("moderation", "[]"),
      unless<Raw>("store", "[false]", "nothing is kept"),
      unless<Raw>("chat_template", "[]", "the model's own template is used"),
      honoured<Raw>("chat_template_kwargs", [](V v, Raw& r) { r.out.thinking = read_thinking(v, r.out.hints); }),
      unless<Raw>("add_generation_prompt", "[true]"),
      unless<Raw>("continue_final_message", "[false]", "use /v1/completions"),
      unless<Raw>("add_special_tokens", "[false]", "the template writes them"),
      unless<Raw>("documents", "[[]]", "put them into a message"),
      hint<Raw>("parallel_tool_calls"),
      hint<Raw>("include_reasoning"),
  });
  return table;
}

const RequestFields& completion_fields() {
  static const RequestFields table = joined({
      honoured<Raw>("prompt", read_prompt),
      honoured<Raw>("logprobs",
                    [](V v, Raw& r) { r.top_logprobs = static_cast<uint32_t>(v.whole(0, kMaxTopLogprobs)); }),
      unless<Raw>("suffix", R"([""])"),
      unless<Raw>("add_special_tokens", "[true]", "send token ids for another beginning"),
      unless<Raw>("response_format", R"([{"type": "text"}])", "ask for the format in the prompt"),
      unless<Raw>("prompt_embeds", "[]"),
  });
  return table;
}

}  // namespace stet
