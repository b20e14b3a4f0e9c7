#include "lab/bench/openai_form.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace stet {
namespace {

constexpr int kStatusOk = 200;
constexpr size_t kShownError = 300;

std::vector<int32_t> ids_of(const Json& json, RequestRecord& record) {
  std::vector<int32_t> ids;
  for (const Json& id : json) {
    if (!id.is_number_integer() || id < 0 || id > std::numeric_limits<int32_t>::max()) {
      record.error = "a list of token ids holds something that is none";
      return {};
    }
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

void read_usage(const Json& event, RequestRecord& record) {
  const Json& usage = object_member(event, "usage");
  if (!usage.empty()) {
    record.usage.prompt_tokens = count_member(usage, "prompt_tokens");
    record.usage.completion_tokens = count_member(usage, "completion_tokens");
    record.usage.cached_tokens = count_member(object_member(usage, "prompt_tokens_details"), "cached_tokens");
  }
  // llama.cpp says it here too, in versions whose usage has no details.
  if (!record.usage.cached_tokens)
    record.usage.cached_tokens = count_member(object_member(event, "timings"), "cache_n");
}

}  // namespace

Json openai_body(const PlannedRequest& request, const std::string& model) {
  Json body = {
      {"model", model}, {"messages", Json::parse(messages_json(request.messages))}, {"max_tokens", request.max_tokens}};
  const Json sampling = Json::parse(sampling_json(request));
  for (const auto& [key, value] : sampling.items()) body[key] = value;
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  return body;
}

std::optional<Json> get_json(HttpClient& client, const std::string& path) {
  const HttpReplyRecord reply = client.get(path);
  if (!reply.complete || reply.status != kStatusOk) return std::nullopt;
  try {
    Json json = parse_json(reply.body, path);
    return json.is_object() ? std::optional(std::move(json)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string choose_model(const Json& models, const std::string& asked) {
  std::vector<std::string> ids;
  const auto data = models.find("data");
  if (data != models.end() && data->is_array())
    for (const Json& item : *data)
      if (std::string id = text_member(item, "id"); !id.empty()) ids.push_back(std::move(id));
  if (ids.empty()) fail(Code::kInput, "the server lists no model at /v1/models: load one first");
  if (asked.empty() && ids.size() == 1) return ids[0];
  if (std::find(ids.begin(), ids.end(), asked) != ids.end()) return asked;
  fail(Code::kUsage, "the server has {} models{}: choose one with --model-id: {}", ids.size(),
       asked.empty() ? "" : fmt::format(", and none is called '{}'", asked), fmt::join(ids, ", "));
}

std::string text_member(const Json& object, std::string_view key) {
  if (!object.is_object()) return "";
  const auto it = object.find(std::string(key));
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

std::optional<uint32_t> count_member(const Json& object, std::string_view key) {
  if (!object.is_object()) return std::nullopt;
  const auto it = object.find(std::string(key));
  if (it == object.end() || !it->is_number_integer() || *it < 0 || *it > std::numeric_limits<uint32_t>::max())
    return std::nullopt;
  return it->get<uint32_t>();
}

const Json& object_member(const Json& object, std::string_view key) {
  static const Json kNone = Json::object();
  if (!object.is_object()) return kNone;
  const auto it = object.find(std::string(key));
  return it != object.end() && it->is_object() ? *it : kNone;
}

std::string file_name(std::string_view path) { return std::string(path.substr(path.find_last_of("/\\") + 1)); }

ServerIdentity foreign_identity(std::string_view name, const std::string& version, const std::string& model,
                                const Json& more) {
  Json json = {
      {"server", name}, {"server_version", version.empty() ? "unproven" : version}, {"model", file_name(model)}};
  for (const auto& [key, value] : more.items()) json[key] = value;
  // It computes no hash of what it loaded.
  for (const char* key : {"build_id", "model_sha256", "tokenizer_sha256"})
    if (!json.contains(key)) json[key] = "unproven";
  return {model, dump_line(json)};
}

std::string error_text(std::string_view body) {
  std::string text(body);
  const Json json = Json::parse(body, nullptr, false);
  if (json.is_object()) {
    const auto error = json.find("error");
    if (error != json.end() && error->is_string()) text = error->get<std::string>();
    if (const std::string message = text_member(object_member(json, "error"), "message"); !message.empty())
      text = message;
    if (const std::string message = text_member(json, "message"); !message.empty()) text = message;
  }
  if (text.size() > kShownError) text.resize(kShownError);
  return text;
}

void OpenAiReader::extend(const Json&, ChunkEvent&, RequestRecord&) {}

void OpenAiReader::event(int64_t arrival_ns, const SseEvent& sse, RequestRecord& record) {
  if (!record.error.empty()) return;
  if (ended_) {
    record.error = "the server sent an event after [DONE]";
    return;
  }
  if (sse.data == "[DONE]") {
    ended_ = true;
    return;
  }
  const Json event = Json::parse(sse.data, nullptr, false);
  if (!event.is_object()) {
    record.error = "an event is no JSON object: " + error_text(sse.data);
    return;
  }
  if (const auto error = event.find("error"); sse.name == "error" || (error != event.end() && !error->is_null())) {
    record.error = "the server reports: " + error_text(sse.data);
    return;
  }
  if (const auto ids = event.find("prompt_token_ids"); ids != event.end() && ids->is_array())
    record.prompt_token_ids = ids_of(*ids, record);
  read_usage(event, record);
  const auto choices = event.find("choices");
  const bool any = choices != event.end() && choices->is_array() && !choices->empty();
  if (any && (choices->size() > 1 || count_member((*choices)[0], "index").value_or(0) != 0)) {
    record.error = "the server sends more than one choice";
    return;
  }
  choice(arrival_ns, event, any ? (*choices)[0] : Json::object(), record);
}

void OpenAiReader::choice(int64_t arrival_ns, const Json& event, const Json& choice, RequestRecord& record) {
  ChunkEvent chunk;
  chunk.client_ns = arrival_ns;
  chunk.channel = Channel::none;
  const Json& delta = object_member(choice, "delta");
  const std::string content = text_member(delta, "content") + text_member(choice, "text");
  std::string reasoning = text_member(delta, "reasoning");
  if (reasoning.empty()) reasoning = text_member(delta, "reasoning_content");
  const auto tools = delta.find("tool_calls");
  if (const auto ids = choice.find("token_ids"); ids != choice.end() && ids->is_array()) {
    chunk.token_ids = ids_of(*ids, record);
    // An id without text is a token all the same: half a character, or the end.
    if (!chunk.token_ids->empty()) chunk.channel = Channel::content;
  }
  if (!content.empty()) {
    chunk.channel = Channel::content;
  } else if (!reasoning.empty()) {
    chunk.channel = Channel::reasoning;
  } else if (tools != delta.end() && tools->is_array() && !tools->empty()) {
    chunk.channel = Channel::tool;
    chunk.text = dump_line(*tools);
  }
  if (chunk.text.empty()) chunk.text = content.empty() ? reasoning : content;
  if (const std::string why = text_member(choice, "finish_reason"); !why.empty()) record.finish_reason = why;
  extend(event, chunk, record);
  record.chunks.push_back(std::move(chunk));
}

}  // namespace stet
