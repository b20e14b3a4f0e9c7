// vLLM: token ids and a salted cache; how many prompt tokens were cached only where the server was started so.
#include "base/error.h"
#include "base/hash.h"
#include "lab/bench/openai_form.h"

namespace stet {
namespace {

class VllmAdapter : public Adapter {
 public:
  const AdapterFacts& facts() const override {
    static constexpr AdapterFacts kFacts = {
        .name = "vllm",
        .cache = "a cache_salt of its own in every request",
        .token_ids = "return_token_ids: token_ids of every frame, prompt_token_ids of the first",
        .cached_tokens =
            "usage.prompt_tokens_details.cached_tokens, where the server runs with --enable-prompt-tokens-details",
        .server_clock = "none",
        .cycles = "none: a frame with several ids was one step, but its depth is not said",
        .tested = "against its documented form only",
    };
    return kFacts;
  }

  std::optional<ServerIdentity> identify(HttpClient& client, const std::string& model) const override {
    const std::optional<Json> version = get_json(client, "/version");
    if (!version || text_member(*version, "version").empty()) return std::nullopt;
    const std::optional<Json> models = get_json(client, "/v1/models");
    if (!models) return std::nullopt;
    const std::string chosen = choose_model(*models, model);
    Json more = Json::object();
    for (const Json& item : (*models)["data"]) {
      if (text_member(item, "id") != chosen) continue;
      if (text_member(item, "owned_by") != "vllm") return std::nullopt;
      if (const std::string root = text_member(item, "root"); !root.empty()) more["model_root"] = file_name(root);
      if (const auto length = count_member(item, "max_model_len")) more["context"] = *length;
    }
    return foreign_identity("vllm", text_member(*version, "version"), chosen, more);
  }

  HttpCall call(const PlannedRequest& request, const ServerIdentity& server, HttpClient&) const override {
    Json body = openai_body(request, server.model);
    body["return_token_ids"] = true;
    if (request.cold) body["cache_salt"] = salt();
    return {"/v1/chat/completions", dump_line(body), std::nullopt};
  }

  std::unique_ptr<AnswerReader> reader() const override { return std::make_unique<OpenAiReader>(); }

 private:
  // Never the same twice, and no part of the prompt: what the model reads stays what the plan says.
  static std::string salt() {
    const uint64_t drawn[2] = {draw_seed(), draw_seed()};
    return sha256_hex(drawn, sizeof drawn).substr(0, 43);
  }
};

}  // namespace

const Adapter& vllm_adapter() {
  static const VllmAdapter adapter;
  return adapter;
}

}  // namespace stet
