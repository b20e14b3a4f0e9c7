// llama.cpp's server. Its chat completions carry no token ids (return_tokens changes nothing there), so the prompt is
// rendered and turned into ids by the server itself, and answered by its native /completion, which has them.
#include <limits>

#include "base/error.h"
#include "lab/bench/openai_form.h"

namespace stet {
namespace {

double number_member(const Json& object, std::string_view key) {
  const auto it = object.find(std::string(key));
  return it != object.end() && it->is_number() ? it->get<double>() : 0;
}

std::optional<std::vector<int32_t>> ids_member(const Json& object, std::string_view key) {
  const auto it = object.find(std::string(key));
  if (it == object.end() || !it->is_array()) return std::nullopt;
  std::vector<int32_t> ids;
  for (const Json& id : *it) {
    if (!id.is_number_integer() || id < 0 || id > std::numeric_limits<int32_t>::max()) return std::nullopt;
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

class LlamaReader : public AnswerReader {
 public:
  void event(int64_t arrival_ns, const SseEvent& sse, RequestRecord& record) override {
    if (!record.error.empty()) return;
    const Json event = Json::parse(sse.data, nullptr, false);
    if (!event.is_object() || event.contains("error")) {
      record.error =
          (event.is_object() ? "the server reports: " : "an event is no JSON object: ") + error_text(sse.data);
      return;
    }
    if (ended_) {
      record.error = "the server sent an event after its last";
      return;
    }
    ChunkEvent chunk;
    chunk.client_ns = arrival_ns;
    chunk.text = text_member(event, "content");
    chunk.token_ids = ids_member(event, "tokens");
    chunk.channel =
        chunk.text.empty() && (!chunk.token_ids || chunk.token_ids->empty()) ? Channel::none : Channel::content;
    const Json& timings = object_member(event, "timings");
    if (!timings.empty())
      chunk.server_ns =
          static_cast<int64_t>((number_member(timings, "prompt_ms") + number_member(timings, "predicted_ms")) * 1e6);
    if (const auto cached = count_member(timings, "cache_n")) record.usage.cached_tokens = cached;
    if (const auto stop = event.find("stop"); stop != event.end() && stop->is_boolean() && stop->get<bool>())
      end(event, record);
    record.chunks.push_back(std::move(chunk));
  }
  bool ended() const override { return ended_; }

 private:
  void end(const Json& event, RequestRecord& record) {
    ended_ = true;
    record.usage.prompt_tokens = count_member(event, "tokens_evaluated");
    record.usage.completion_tokens = count_member(event, "tokens_predicted");
    const std::string why = text_member(event, "stop_type");
    record.finish_reason = why == "eos" || why == "word" ? "stop" : why == "limit" ? "length" : why;
    // "limit" is max_tokens or the end of the context.
    if (why == "limit" && record.usage.completion_tokens && *record.usage.completion_tokens < record.max_tokens)
      record.finish_reason = "context";
  }
  bool ended_ = false;
};

class LlamaCppAdapter : public Adapter {
 public:
  const AdapterFacts& facts() const override {
    static constexpr AdapterFacts kFacts = {
        .name = "llama.cpp",
        .cache = "cache_prompt: false in every request",
        .token_ids =
            "/apply-template and /tokenize for the prompt, return_tokens of /completion for the answer; the ids of a "
            "character "
            "that needs several tokens are left out by the server, which the counts then show",
        .cached_tokens = "timings.cache_n",
        .server_clock = "timings_per_token: timings.prompt_ms + timings.predicted_ms, since it began with the request",
        .cycles = "none",
        .tested = "against recorded replies of the llama.cpp server in xllamacpp 2026.10.11549",
    };
    return kFacts;
  }

  std::optional<ServerIdentity> identify(HttpClient& client, const std::string& model) const override {
    const std::optional<Json> props = get_json(client, "/props");
    if (!props || !props->contains("default_generation_settings")) return std::nullopt;
    const std::optional<Json> models = get_json(client, "/v1/models");
    const std::string chosen = choose_model(models.value_or(Json::object()), model);
    Json more = {{"model_file", file_name(text_member(*props, "model_path"))},
                 {"quantization", text_member(*props, "model_ftype")}};
    const Json& settings = object_member(*props, "default_generation_settings");
    if (const auto context = count_member(settings, "n_ctx")) more["context"] = *context;
    if (const auto slots = count_member(*props, "total_slots")) more["slots"] = *slots;
    if (const std::string types = text_member(object_member(settings, "params"), "speculative.types"); !types.empty())
      more["speculative_types"] = types;
    return foreign_identity("llama.cpp", text_member(*props, "build_info"), chosen, more);
  }

  bool ready(HttpClient& client) const override { return client.get("/health").status == kHttpOk; }

  HttpCall call(const PlannedRequest& request, const ServerIdentity& server, HttpClient& client) const override {
    const Json rendered = ask(client, "/apply-template", {{"messages", Json::parse(messages_json(request.messages))}});
    const Json tokens =
        ask(client, "/tokenize",
            {{"content", text_member(rendered, "prompt")}, {"add_special", true}, {"parse_special", true}});
    const std::optional<std::vector<int32_t>> ids = ids_member(tokens, "tokens");
    if (!ids || ids->empty()) fail(Code::kInput, "the llama.cpp server gives no token ids at /tokenize");
    const SamplingParams& s = request.sampling;
    Json body = {{"model", server.model},           {"prompt", *ids},
                 {"n_predict", request.max_tokens}, {"stream", true},
                 {"return_tokens", true},           {"timings_per_token", true},
                 {"cache_prompt", !request.cold}};
    const Json asked = Json::parse(sampling_json(request));
    for (const auto& [key, value] : asked.items())
      if (key != "logit_bias" && key != "repetition_penalty") body[key] = value;
    // Its own defaults are not off.
    body["top_k"] = s.top_k;
    body["top_p"] = s.top_p;
    body["min_p"] = s.min_p;
    body["repeat_penalty"] = s.repetition_penalty;
    for (const auto& [id, value] : s.logit_bias) body["logit_bias"].push_back(Json::array({id, value}));
    return {"/completion", dump_line(body), ids};
  }

  std::unique_ptr<AnswerReader> reader() const override { return std::make_unique<LlamaReader>(); }

 private:
  static Json ask(HttpClient& client, const std::string& path, const Json& body) {
    const HttpReplyRecord reply = client.post(path, dump_line(body));
    if (!reply.complete || reply.status != kHttpOk)
      fail(Code::kInput,
           "the llama.cpp server does not answer {}: {}; a server without it is measured with --server openai", path,
           reply.error.empty() ? fmt::format("status {}, {}", reply.status, error_text(reply.body)) : reply.error);
    return parse_json(reply.body, "the reply to " + path);
  }
};

}  // namespace

const Adapter& llama_cpp_adapter() {
  static const LlamaCppAdapter adapter;
  return adapter;
}

}  // namespace stet
