#include "server/api/api.h"

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "server/api/answer.h"
#include "server/api/intake.h"
#include "server/api/known_identity.h"
#include "server/api/status_json.h"
#include "server/api/token_text.h"
#include "server/page/page.h"
#include "spec/sampling.h"
#include "text/unicode.h"

namespace stet {
namespace {

constexpr std::chrono::milliseconds kIdentityPatience{3000};
constexpr std::string_view kModels = "/v1/models/";

// "%3A" to ":"; what is no such escape stays.
std::string percent_decoded(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

HttpReply json_reply(std::string body) { return {.body = std::move(body), .headers = {{"cache-control", "no-store"}}}; }

}  // namespace

struct Api::Impl {
  using Handler = void (Impl::*)(const std::shared_ptr<Exchange>&);
  struct Route {
    std::string_view path;
    std::string_view method;
    Handler handler;
  };
  static const std::array<Route, 10> kRoutes;

  Impl(GenerationLoop& loop_, ApiOptions options)
      : loop(loop_), shared(std::make_shared<SharedState>(std::move(options))) {}

  void handle(std::shared_ptr<Exchange> exchange);
  void run(const Route& route, const std::shared_ptr<Exchange>& exchange);
  void reply(const std::shared_ptr<Exchange>& exchange, std::string_view endpoint, HttpReply reply);
  void refuse_path(const std::shared_ptr<Exchange>& exchange);

  void page(const std::shared_ptr<Exchange>& e) { reply(e, "/", page_reply()); }
  void health(const std::shared_ptr<Exchange>& exchange);
  void status(const std::shared_ptr<Exchange>& exchange);
  void metrics(const std::shared_ptr<Exchange>& exchange);
  void models(const std::shared_ptr<Exchange>& exchange);
  void model(const std::shared_ptr<Exchange>& exchange);
  void tokenize(const std::shared_ptr<Exchange>& exchange);
  void detokenize(const std::shared_ptr<Exchange>& exchange);
  void chat(const std::shared_ptr<Exchange>& e) { generate(e, "/v1/chat/completions", true); }
  void completion(const std::shared_ptr<Exchange>& e) { generate(e, "/v1/completions", false); }

  const Engine& engine() const;  // throws ApiError(503) while there is none
  void generate(const std::shared_ptr<Exchange>& exchange, std::string_view endpoint, bool is_chat);
  FaceContext face_context(const ApiRequest& request, const Engine& engine, uint64_t id, bool is_chat) const;
  void note(const HttpRequest& request, const ApiRequest& asked);

  void say_status(const std::shared_ptr<Exchange>& exchange, const std::string& identity);

  GenerationLoop& loop;
  const std::shared_ptr<SharedState> shared;
  KnownIdentity identity;
  const uint64_t nonce = draw_seed();  // ids of answers differ between runs of the server
  const int64_t created = std::time(nullptr);
  // Last: their tasks use the others.
  Intake intake;
  Intake status_lane;  // for those who wait for the identity
};

const std::array<Api::Impl::Route, 10> Api::Impl::kRoutes = {{
    {"/", "GET", &Impl::page},
    {"/index.html", "GET", &Impl::page},
    {"/health", "GET", &Impl::health},
    {"/status", "GET", &Impl::status},
    {"/metrics", "GET", &Impl::metrics},
    {"/v1/models", "GET", &Impl::models},
    {"/v1/chat/completions", "POST", &Impl::chat},
    {"/v1/completions", "POST", &Impl::completion},
    {"/tokenize", "POST", &Impl::tokenize},
    {"/detokenize", "POST", &Impl::detokenize},
}};

Api::Api(GenerationLoop& loop, ApiOptions options) : impl_(std::make_unique<Impl>(loop, std::move(options))) {}
Api::~Api() = default;
void Api::handle(std::shared_ptr<Exchange> exchange) { impl_->handle(std::move(exchange)); }

void Api::Impl::handle(std::shared_ptr<Exchange> exchange) {
  static constexpr Route kModel = {kModels, "GET", &Impl::model};
  const HttpRequest& request = exchange->request();
  const auto found = std::ranges::find(kRoutes, request.path, &Route::path);
  const bool is_model = request.path.starts_with(kModels) && request.path.size() > kModels.size();
  const Route* route = found != kRoutes.end() ? &*found : is_model ? &kModel : nullptr;
  if (route == nullptr) return refuse_path(exchange);
  if (request.method != route->method) {
    ApiError error(405, "invalid_request_error", "method_not_allowed",
                   fmt::format("{} takes {}, not {}", route->path, route->method, shortened(request.method, 20)));
    error.headers["allow"] = route->method == "GET" ? "GET, HEAD" : "POST";
    return reply(exchange, route->path, error.reply());
  }
  if (route->method == "GET") return run(*route, exchange);
  intake.add([this, route, exchange] { run(*route, exchange); });
}

void Api::Impl::run(const Route& route, const std::shared_ptr<Exchange>& exchange) {
  try {
    (this->*route.handler)(exchange);
  } catch (const std::exception& error) {
    reply(exchange, route.path, to_api_error(error).reply());
  }
}

void Api::Impl::reply(const std::shared_ptr<Exchange>& exchange, std::string_view endpoint, HttpReply reply) {
  const int status = reply.status;
  exchange->reply(std::move(reply));
  shared->metrics.replied(endpoint, status);
  shared->log_request(exchange->request(), status);
}

void Api::Impl::refuse_path(const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& request = exchange->request();
  const ApiError error(
      404, "invalid_request_error", "unknown_url",
      fmt::format("there is nothing at {} {}", shortened(request.method, 20), shortened(request.path, 200)));
  reply(exchange, "other", error.reply());
}

const Engine& Api::Impl::engine() const {
  const Engine* engine = loop.engine();
  if (engine != nullptr) return *engine;
  const LoopStatus status = loop.status();
  if (status.load.failed) throw error_not_loaded(status.load.error);
  if (status.stopping) throw error_stopping();
  throw error_loading(status.load.phase);
}

void Api::Impl::health(const std::shared_ptr<Exchange>& exchange) {
  const LoopStatus status = loop.status();
  HttpReply answer = json_reply(health_json(status));
  const bool ready = status.load.ready && !status.stopping;
  answer.status = ready ? 200 : 503;
  if (!ready && !status.stopping && !status.load.failed) answer.headers["retry-after"] = "2";
  reply(exchange, "/health", std::move(answer));
}

// Who asks first begins the reading of the model's file, and waits for its hash a while: a benchmark asks once.
void Api::Impl::status(const std::shared_ptr<Exchange>& exchange) {
  const Engine* ready = loop.engine();
  if (ready != nullptr) identity.begin(*ready);
  if (ready == nullptr || !identity.get().empty()) return say_status(exchange, identity.get());
  status_lane.add([this, exchange] { say_status(exchange, identity.wait(kIdentityPatience)); });
}

void Api::Impl::say_status(const std::shared_ptr<Exchange>& exchange, const std::string& known) {
  reply(exchange, "/status", json_reply(status_json(loop.status(), loop.engine(), known, shared->uptime_seconds())));
}

void Api::Impl::metrics(const std::shared_ptr<Exchange>& exchange) {
  HttpReply answer = json_reply(shared->metrics.text(loop.status(), shared->uptime_seconds()));
  answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
  reply(exchange, "/metrics", std::move(answer));
}

void Api::Impl::models(const std::shared_ptr<Exchange>& exchange) {
  reply(exchange, "/v1/models", json_reply(models_json(engine(), shared->options.model_id, created)));
}

void Api::Impl::model(const std::shared_ptr<Exchange>& exchange) {
  const std::string asked = percent_decoded(std::string_view(exchange->request().path).substr(kModels.size()));
  const std::string& id = shared->options.model_id;
  if (asked != id)
    throw ApiError(404, "invalid_request_error", "model_not_found",
                   fmt::format("there is no model '{}'; this server has '{}'", shortened(asked, 200), id), "model");
  reply(exchange, kModels, json_reply(model_json(engine(), id, created)));
}

void Api::Impl::tokenize(const std::shared_ptr<Exchange>& exchange) {
  const Engine& e = engine();
  const TokenizeRequest request = read_tokenize_request(exchange->request().body);
  shared->name_hints(request.hints);
  const auto* text = std::get_if<std::string>(&request.prompt);
  const TokenIds ids = text != nullptr ? tokenize_text(e, *text, request.add_special_tokens.value_or(true), "prompt")
                                       : tokenize_conversation(e, std::get<Conversation>(request.prompt),
                                                               request.add_generation_prompt, request.thinking);
  nlohmann::ordered_json out;
  out["count"] = ids.size();
  out["max_model_len"] = e.info().context;
  out["tokens"] = ids;
  out["token_strs"] = nullptr;
  if (request.return_token_strs) {
    out["token_strs"] = nlohmann::ordered_json::array();
    for (const int32_t id : ids) out["token_strs"].push_back(token_text(e, id));
  }
  reply(exchange, "/tokenize", json_reply(out.dump()));
}

void Api::Impl::detokenize(const std::shared_ptr<Exchange>& exchange) {
  const Engine& e = engine();
  Hints hints;
  const TokenIds ids = read_detokenize_request(exchange->request().body, ModelLimits::of(e), hints);
  if (!e.has_vocabulary()) refuse("tokens", "the model has no vocabulary, so its ids have no text");
  nlohmann::ordered_json out;
  out["prompt"] = replace_invalid_utf8(e.detokenize(ids, true));
  reply(exchange, "/detokenize", json_reply(out.dump()));
}

FaceContext Api::Impl::face_context(const ApiRequest& request, const Engine& e, uint64_t id, bool is_chat) const {
  FaceContext context;
  context.id = fmt::format("{}-{:016x}", is_chat ? "chatcmpl" : "cmpl", xxh3(&id, sizeof id, nonce));
  context.created = std::time(nullptr);
  context.model = shared->options.model_id;
  context.fingerprint = fingerprint(e.info());
  context.engine = &e;
  context.include_usage = request.include_usage;
  context.return_token_ids = request.return_token_ids;
  context.cycle_events = request.cycle_events;
  context.logprobs = request.request.top_logprobs.has_value();
  if (request.return_token_ids) context.prompt = request.request.prompt;
  return context;
}

void Api::Impl::note(const HttpRequest& request, const ApiRequest& asked) {
  shared->name_hints(asked.hints);
  const SamplingParams& s = asked.request.sampling;
  if (!asked.sampled() && (s.top_k != 0 || s.top_p != 1.0f || s.min_p != 0.0f))
    shared->log_once(
        "greedy",
        "a request has top_p, top_k or min_p and no temperature: answers are greedy unless temperature is above 0");
  if (shared->options.log_prompts) shared->log(fmt::format("#{} asks: {}", request.id, request.body));
}

void Api::Impl::generate(const std::shared_ptr<Exchange>& exchange, std::string_view endpoint, bool is_chat) {
  if (exchange->gone()) {
    shared->metrics.replied(endpoint, kClientLeft);
    return shared->log_request(exchange->request(), kClientLeft);
  }
  const Engine& e = engine();
  const HttpRequest& http = exchange->request();
  const ModelLimits limits = ModelLimits::of(e);
  ApiRequest request = is_chat ? read_chat_request(http.body, limits) : read_completion_request(http.body, limits);
  note(http, request);
  tokenize_prompt(request, e);
  request.prompt = {};  // from here on it is ids
  FaceContext context = face_context(request, e, http.id, is_chat);
  std::unique_ptr<Face> face = is_chat ? make_chat_face(std::move(context)) : make_completion_face(std::move(context));
  switch (loop.submit(std::make_shared<Answer>(exchange, endpoint, std::move(request), std::move(face), shared))) {
    case GenerationLoop::Submit::accepted:
      return;
    case GenerationLoop::Submit::full:
      throw error_queue_full(loop.status().queue_limit);
    case GenerationLoop::Submit::loading:
      throw error_loading("");
    case GenerationLoop::Submit::stopping:
      throw error_stopping();
  }
}

}  // namespace stet
