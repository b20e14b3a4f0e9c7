// Ollama: what its OpenAI-compatible interface says, which is neither token ids nor how much of a prompt was cached.
#include "lab/bench/openai_form.h"

namespace stet {
namespace {

class OllamaAdapter : public Adapter {
 public:
  const AdapterFacts& facts() const override {
    static constexpr AdapterFacts kFacts = {
        .name = "ollama",
        .cache = "it has no switch: only the nonce before every prompt",
        .token_ids = "none: a frame is taken for what it holds, and no count of tokens is proved",
        .cached_tokens = "none",
        .server_clock = "none",
        .cycles = "none",
        .tested = "against its documented form only",
    };
    return kFacts;
  }

  std::optional<ServerIdentity> identify(HttpClient& client, const std::string& model) const override {
    const std::optional<Json> version = get_json(client, "/api/version");
    if (!version || text_member(*version, "version").empty()) return std::nullopt;
    const std::optional<Json> models = get_json(client, "/v1/models");
    const std::string chosen = choose_model(models.value_or(Json::object()), model);
    Json more = Json::object();
    const std::optional<Json> tags = get_json(client, "/api/tags");
    const auto list = tags ? tags->find("models") : Json::const_iterator();
    if (tags && list != tags->end() && list->is_array()) {
      for (const Json& item : *list) {
        if (text_member(item, "name") != chosen) continue;
        more["model_digest"] = text_member(item, "digest");
        for (const char* key : {"format", "family", "parameter_size", "quantization_level"})
          if (const std::string value = text_member(object_member(item, "details"), key); !value.empty())
            more[key] = value;
      }
    }
    return foreign_identity("ollama", text_member(*version, "version"), chosen, more);
  }

  HttpCall call(const PlannedRequest& request, const ServerIdentity& server, HttpClient&) const override {
    return {"/v1/chat/completions", dump_line(openai_body(request, server.model)), std::nullopt};
  }

  std::unique_ptr<AnswerReader> reader() const override { return std::make_unique<OpenAiReader>(); }
};

}  // namespace

const Adapter& ollama_adapter() {
  static const OllamaAdapter adapter;
  return adapter;
}

}  // namespace stet
