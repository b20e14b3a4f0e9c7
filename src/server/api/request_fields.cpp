// The fields of chat and completion requests.
#include <nlohmann/json.hpp>

#include "server/api/api_error.h"
#include "server/api/messages.h"
#include "server/api/raw_request.h"

namespace stet {
namespace {

using V = const FieldValue&;
using R = RawRequest;

constexpr uint64_t kMaxTopLogprobs = 20;
constexpr std::string_view kNoTools = "this server does not run tools";

struct StreamOptions {
  bool include_usage = false;
};

void read_stream_options(V v, R& r) {
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
void read_prompt(V v, R& r) {
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

RequestFields joined(RequestFields table) {
  for (const RequestFields& more : {common_fields(), sampling_fields()})
    table.insert(table.end(), more.begin(), more.end());
  return table;
}

}  // namespace

RequestFields common_fields() {
  return {
      honoured<R>("model", [](V v, R&) { v.text(); }),  // any name: there is one model
      honoured<R>("stream", [](V v, R& r) { r.out.stream = v.boolean(); }),
      honoured<R>("stream_options", read_stream_options),
      honoured<R>("return_token_ids", [](V v, R& r) { r.out.return_token_ids = v.boolean(); }),
      honoured<R>("cycle_events", [](V v, R& r) { r.out.cycle_events = v.boolean(); }),
      honoured<R>("cache_prompt", [](V v, R& r) { r.out.request.reuse_prefix = v.boolean(); }),
      unless<R>("n", "[1]", "send one request for each answer"),
      unless<R>("best_of", "[1]"),
      unless<R>("echo", "[false]", "join prompt and answer yourself"),
      unless<R>("return_tokens_as_token_ids", "[false]", "return_token_ids gives the ids"),
      hint<R>("user"),
      hint<R>("metadata"),
      hint<R>("service_tier"),
      hint<R>("prompt_cache_key"),
      hint<R>("prompt_cache_retention"),
      hint<R>("prompt_cache_options"),
      hint<R>("safety_identifier"),
      hint<R>("priority"),
      hint<R>("request_id"),
      hint<R>("cache_salt"),
      hint<R>("id_slot"),
  };
}

const RequestFields& chat_fields() {
  static const RequestFields table = joined({
      honoured<R>("messages",
                  [](V v, R& r) {
                    r.out.prompt_field = v.path();
                    r.out.prompt = read_messages(v, r.out.hints);
                  }),
      honoured<R>("max_completion_tokens", [](V v, R& r) { r.max_completion_tokens = v.whole(1, UINT64_MAX); }),
      honoured<R>("logprobs", [](V v, R& r) { r.logprobs = v.boolean(); }),
      honoured<R>("top_logprobs",
                  [](V v, R& r) { r.top_logprobs = static_cast<uint32_t>(v.whole(0, kMaxTopLogprobs)); }),
      unless<R>("tools", "[[]]", kNoTools),
      unless<R>("tool_choice", R"(["none"])", kNoTools),
      unless<R>("functions", "[[]]", kNoTools),
      unless<R>("function_call", R"(["none"])", kNoTools),
      unless<R>("response_format", R"([{"type": "text"}])", "ask for the format in the prompt"),
      unless<R>("audio", "[]", "the model writes text"),
      unless<R>("modalities", R"([["text"]])", "the model writes text"),
      unless<R>("prediction", "[]"),
      unless<R>("reasoning_effort", R"(["none"])"),
      unless<R>("verbosity", R"(["medium"])", "ask for it in the prompt"),
      unless<R>("web_search_options", "[]"),
      unless<R>("moderation", "[]"),
      unless<R>("store", "[false]", "nothing is kept"),
      unless<R>("chat_template", "[]", "the model's own template is used"),
      unless<R>("chat_template_kwargs", "[{}]"),
      unless<R>("add_generation_prompt", "[true]"),
      unless<R>("continue_final_message", "[false]", "use /v1/completions"),
      unless<R>("add_special_tokens", "[false]", "the template writes them"),
      unless<R>("documents", "[[]]", "put them into a message"),
      hint<R>("parallel_tool_calls"),
      hint<R>("include_reasoning"),
  });
  return table;
}

const RequestFields& completion_fields() {
  static const RequestFields table = joined({
      honoured<R>("prompt", read_prompt),
      honoured<R>("logprobs", [](V v, R& r) { r.top_logprobs = static_cast<uint32_t>(v.whole(0, kMaxTopLogprobs)); }),
      unless<R>("suffix", R"([""])"),
      unless<R>("add_special_tokens", "[true]", "send token ids for another beginning"),
      unless<R>("response_format", R"([{"type": "text"}])", "ask for the format in the prompt"),
      unless<R>("prompt_embeds", "[]"),
  });
  return table;
}

}  // namespace stet
