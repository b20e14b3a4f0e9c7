// Any other server with OpenAI's chat completions: nothing is asked for that OpenAI does not document.
#include "lab/bench/openai_form.h"

namespace stet {
namespace {

class OpenAiAdapter : public Adapter {
 public:
  const AdapterFacts& facts() const override {
    static constexpr AdapterFacts kFacts = {
        .name = "openai",
        .cache = "no switch is known: only the nonce before every prompt",
        .token_ids = "token_ids of a frame, where the server sends them unasked",
        .cached_tokens = "usage.prompt_tokens_details.cached_tokens, or timings.cache_n",
        .server_clock = "none",
        .cycles = "none",
        .tested = "against recorded replies of llama-cpp-python 0.3.36 and of llama.cpp's chat completions",
    };
    return kFacts;
  }

  std::optional<ServerIdentity> identify(HttpClient& client, const std::string& model) const override {
    const std::optional<Json> models = get_json(client, "/v1/models");
    if (!models || !models->contains("data")) return std::nullopt;
    return foreign_identity("openai", "", choose_model(*models, model), Json::object());
  }

  HttpCall call(const PlannedRequest& request, const ServerIdentity& server, HttpClient&) const override {
    return {"/v1/chat/completions", dump_line(openai_body(request, server.model)), std::nullopt};
  }

  std::unique_ptr<AnswerReader> reader() const override { return std::make_unique<OpenAiReader>(); }
};

}  // namespace

const Adapter& openai_adapter() {
  static const OpenAiAdapter adapter;
  return adapter;
}

}  // namespace stet
