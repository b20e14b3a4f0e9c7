// stet's own server: says what it runs on, every cycle with its ids, depth and clock, and how many prompt tokens it had
// already.
#include "lab/bench/openai_form.h"

namespace stet {
namespace {

class StetReader : public OpenAiReader {
 protected:
  void extend(const Json& event, ChunkEvent& chunk, RequestRecord& record) override {
    const Json& more = object_member(event, "stet");
    if (more.empty()) return;
    if (const auto ns = more.find("server_ns"); ns != more.end() && ns->is_number_integer())
      chunk.server_ns = ns->get<int64_t>();
    chunk.depth = count_member(more, "depth");
    chunk.accepted = count_member(more, "accepted");
    if (text_member(more, "finish") == "context") record.finish_reason = "context";
  }
};

class StetAdapter : public Adapter {
 public:
  const AdapterFacts& facts() const override {
    static constexpr AdapterFacts kFacts = {
        .name = "stet",
        .cache = "cache_prompt: false in every request",
        .token_ids = "return_token_ids: token_ids of every frame, prompt_token_ids of the first",
        .cached_tokens = "usage.prompt_tokens_details.cached_tokens",
        .server_clock = "cycle_events: stet.server_ns, the monotonic clock at commit",
        .cycles = "cycle_events: stet.depth and stet.accepted, one frame a cycle",
        .tested = "against the server of this project",
    };
    return kFacts;
  }

  std::optional<ServerIdentity> identify(HttpClient& client, const std::string& model) const override {
    const std::optional<Json> status = get_json(client, "/status");
    if (!status || text_member(*status, "state").empty()) return std::nullopt;
    Json identity = {{"server", "stet"}};
    for (const auto& [key, value] : object_member(*status, "identity").items()) identity[key] = value;
    const std::optional<Json> models = get_json(client, "/v1/models");
    const bool loaded = models && models->contains("data") && !(*models)["data"].empty();
    return ServerIdentity{loaded ? choose_model(*models, model) : model, dump_line(identity)};
  }

  bool ready(HttpClient& client) const override {
    const std::optional<Json> status = get_json(client, "/status");
    if (!status || text_member(*status, "state") != "ready") return false;
    // It hashes what it loaded aside: a measurement neither begins without the hashes nor runs beside their reading.
    return object_member(*status, "identity").contains("tokenizer_sha256");
  }

  HttpCall call(const PlannedRequest& request, const ServerIdentity& server, HttpClient&) const override {
    Json body = openai_body(request, server.model);
    body["return_token_ids"] = true;
    body["cycle_events"] = true;
    if (request.cold) body["cache_prompt"] = false;
    return {"/v1/chat/completions", dump_line(body), std::nullopt};
  }

  std::unique_ptr<AnswerReader> reader() const override { return std::make_unique<StetReader>(); }
};

}  // namespace

const Adapter& stet_adapter() {
  static const StetAdapter adapter;
  return adapter;
}

}  // namespace stet
