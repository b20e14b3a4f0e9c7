// The API over the real loop, with a synthetic model and a transport that writes down what it is told.
#include "server/api/api.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "server/api/api_test_util.h"
#include "server/loop/loop_test_util.h"
#include "text/unicode.h"
#include "weights/gguf_writer.h"
#include "weights/synth.h"

namespace stet {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Json = nlohmann::json;
using test::FakeExchange;

constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kCompletions = "/v1/completions";

struct Server {
  explicit Server(LoopOptions loop_options = test::tiny_loop(), bool wait = true)
      : loop(std::move(loop_options)), api(loop, options()) {
    if (wait) test::wait_until_ready(loop);
  }

  std::shared_ptr<FakeExchange> send(const char* method, const std::string& path, const std::string& body = "") {
    auto exchange = std::make_shared<FakeExchange>(method, path, body);
    api.handle(exchange);
    return exchange;
  }
  std::shared_ptr<FakeExchange> get(const std::string& path) {
    auto exchange = send("GET", path);
    exchange->wait();
    return exchange;
  }
  std::shared_ptr<FakeExchange> post(const std::string& path, const Json& body) {
    auto exchange = send("POST", path, body.dump());
    exchange->wait();
    return exchange;
  }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex);
    return log;
  }

  ApiOptions options() {
    ApiOptions o;
    o.model_id = "tiny:model";
    o.log = [this](std::string_view line) {
      const std::lock_guard lock(mutex);
      log.emplace_back(line);
    };
    return o;
  }

  std::mutex mutex;
  std::vector<std::string> log;
  GenerationLoop loop;
  Api api;
};

Server& server() {
  static Server the_server;
  return the_server;
}

Json ids_of(const Request& request) { return request.prompt; }

// A completion as JSON of a request, so that the engine can be asked the same.
Json completion_of(const Request& r, bool stream) {
  Json body = {{"prompt", ids_of(r)},       {"max_tokens", r.max_tokens}, {"temperature", r.sampling.temperature},
               {"top_p", r.sampling.top_p}, {"seed", r.sampling.seed},    {"return_token_ids", true}};
  if (stream) body.update({{"stream", true}, {"cycle_events", true}, {"stream_options", {{"include_usage", true}}}});
  return body;
}

TEST(Api, CompletionsAreWhatAFreshEngineAnswers) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    const Request request = test::some_request(10 + 30 * seed, seed);
    const Generation want = test::fresh_answer(request);
    const Json whole = server().post(kCompletions, completion_of(request, false))->json();
    EXPECT_EQ(whole["choices"][0]["token_ids"], Json(want.tokens));
    EXPECT_EQ(whole["choices"][0]["text"], replace_invalid_utf8(want.text));
    EXPECT_EQ(whole["choices"][0]["finish_reason"], want.finish == Finish::stop ? "stop" : "length");
    EXPECT_EQ(whole["prompt_token_ids"], ids_of(request));
    EXPECT_EQ(whole["usage"]["completion_tokens"], want.tokens.size());
    EXPECT_EQ(whole["stet"]["seed"], seed);
    EXPECT_EQ(whole["stet"]["digest"], want.digest());

    const auto stream = server().post(kCompletions, completion_of(request, true));
    EXPECT_TRUE(stream->complete());
    EXPECT_EQ(stream->events().back(), "[DONE]");
    std::string text;
    Json ids = Json::array(), cycle_ids = Json::array();
    uint64_t cycles = 0;
    for (const Json& chunk : stream->chunks()) {
      if (chunk["choices"].empty()) continue;
      text += chunk["choices"][0]["text"];
      const Json tokens = chunk["choices"][0].value("token_ids", Json::array());
      ids.insert(ids.end(), tokens.begin(), tokens.end());
      if (!chunk.contains("stet") || !chunk["stet"].contains("cycle")) continue;
      EXPECT_EQ(chunk["stet"]["cycle"], cycles++);
      const Json more = chunk["stet"]["token_ids"];
      cycle_ids.insert(cycle_ids.end(), more.begin(), more.end());
    }
    EXPECT_EQ(text, replace_invalid_utf8(want.text));
    EXPECT_EQ(ids, Json(want.tokens));
    EXPECT_EQ(cycle_ids, ids);
    const Json usage = stream->chunks().back()["usage"];
    EXPECT_EQ(usage["completion_tokens"], want.tokens.size());
    EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], request.prompt.size() - 1)
        << "the same prompt was just answered";
  }
}

TEST(Api, CachePromptFalseReusesNothing) {
  const Request request = test::some_request(40, 9);
  Json body = completion_of(request, false);
  server().post(kCompletions, body);
  body["cache_prompt"] = false;
  EXPECT_EQ(server().post(kCompletions, body)->json()["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
}

TEST(Api, ChatGoesThroughTheTemplate) {
  const Json messages = Json::parse(
      R"([{"role": "system", "content": "a"}, {"role": "user", "content": [{"type": "text", "text": "b"}]}])");
  const Json answer =
      server()
          .post(kChat, {{"messages", messages}, {"max_tokens", 5}, {"return_token_ids", true}, {"model", "whatever"}})
          ->json();
  EXPECT_EQ(answer["model"], "tiny:model");
  const Json ids = server().post("/tokenize", {{"messages", messages}})->json();
  EXPECT_EQ(answer["prompt_token_ids"], ids["tokens"]);
  EXPECT_EQ(ids["count"], ids["tokens"].size());
  EXPECT_EQ(ids["max_model_len"], test::kLoopContext);
  EXPECT_EQ(ids["token_strs"], nullptr);
  const std::string text = server().post("/detokenize", {{"tokens", ids["tokens"]}})->json()["prompt"];
  EXPECT_EQ(text, "<|im_start|>system\na<|im_end|>\n<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\n");
}

TEST(Api, TokenStringsShowControlTokensAndPartsOfCharacters) {
  const Json strs =
      server().post("/tokenize", {{"prompt", "a\u00e9"}, {"return_token_strs", true}})->json()["token_strs"];
  EXPECT_EQ(strs, Json::parse(R"(["a", "bytes:\\xc3", "bytes:\\xa9"])"));
}

TEST(Api, StopTextsEndAnAnswer) {
  const Request request = test::some_request(30, 3, 30);
  const std::string text = test::fresh_answer(request).text;
  const size_t at = text.find_first_of("abcdefghijklmnopqrstuvwxyz");
  ASSERT_NE(at, text.npos);
  Json body = completion_of(request, false);
  body["stop"] = {text.substr(at, 1), "never there"};
  const Json answer = server().post(kCompletions, body)->json();
  EXPECT_EQ(answer["choices"][0]["text"], replace_invalid_utf8(text.substr(0, at)));
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(answer["stet"]["finish"], "stop");
}

TEST(Api, ADrawnSeedIsReportedAndGivesTheAnswerAgain) {
  Json body = {{"prompt", "Once"}, {"temperature", 1.5}, {"max_tokens", 30}, {"return_token_ids", true}};
  const Json first = server().post(kCompletions, body)->json();
  EXPECT_NE(first["choices"][0]["token_ids"], server().post(kCompletions, body)->json()["choices"][0]["token_ids"]);
  body["seed"] = first["stet"]["seed"];
  EXPECT_EQ(first["choices"][0]["token_ids"], server().post(kCompletions, body)->json()["choices"][0]["token_ids"]);
}

TEST(Api, LogprobsArriveWithTheTokens) {
  const Json body = {{"messages", {{{"role", "user"}, {"content", "x"}}}},
                     {"max_tokens", 6},
                     {"logprobs", true},
                     {"top_logprobs", 2},
                     {"ignore_eos", true}};
  const Json content = server().post(kChat, body)->json()["choices"][0]["logprobs"]["content"];
  ASSERT_THAT(content, SizeIs(6));
  for (const Json& entry : content) {
    EXPECT_THAT(entry["top_logprobs"], SizeIs(2));
    EXPECT_EQ(entry["logprob"], entry["top_logprobs"][0]["logprob"]) << "greedy: the chosen one is the most probable";
  }
}

TEST(Api, ALongerAnswerThanWhatFitsIsCut) {
  const Request request = test::some_request(test::kLoopContext - 5, 4);
  const Json body = {{"prompt", ids_of(request)}, {"max_tokens", 128000}, {"ignore_eos", true}};
  const Json answer = server().post(kCompletions, body)->json();
  EXPECT_EQ(answer["usage"]["completion_tokens"], 5);
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(answer["stet"]["finish"], "context");
}

TEST(Api, OnlyAPromptThatDoesNotFitIsRefused) {
  for (const uint32_t too_many : {0u, 1u, 500u}) {
    const Request request = test::some_request(test::kLoopContext + too_many, 4);
    const auto refused =
        server().post(kCompletions, {{"prompt", ids_of(request)}, {"max_tokens", 1}, {"stream", true}});
    EXPECT_EQ(refused->answer().status, 400);
    const Json error = refused->json()["error"];
    EXPECT_EQ(error["code"], "context_length_exceeded");
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_EQ(error["param"], "prompt");
    EXPECT_THAT(error["message"].get<std::string>(),
                AllOf(HasSubstr("maximum context length is 400 tokens"),
                      HasSubstr(fmt::format("at least {} too many", too_many + 1))));
  }
}

TEST(Api, BadRequestsAreRefusedByName) {
  const auto refused = server().post(kChat, {{"messages", Json::array()}, {"tools", {1}}});
  EXPECT_EQ(refused->answer().status, 400);
  EXPECT_EQ(server().post(kCompletions, {{"prompt", ""}})->json()["error"]["param"], "prompt");
  const auto broken = server().send("POST", kChat, "{\"messages\": [");
  broken->wait();
  EXPECT_EQ(broken->answer().status, 400);
  EXPECT_EQ(broken->json()["error"]["param"], nullptr);
}

TEST(Api, PathsAndMethods) {
  const auto unknown = server().get("/v1/engines");
  EXPECT_EQ(unknown->answer().status, 404);
  EXPECT_EQ(unknown->json()["error"]["code"], "unknown_url");
  for (const auto& [method, path, allow] : {std::tuple("GET", kChat, "POST"),
                                            {"POST", "/v1/models", "GET, HEAD"},
                                            {"DELETE", "/v1/models/x", "GET, HEAD"},
                                            {"OPTIONS", kCompletions, "POST"},
                                            {"PUT", "/", "GET, HEAD"}}) {
    const auto refused = server().send(method, path, "{}");
    refused->wait();
    EXPECT_EQ(refused->answer().status, 405) << method << path;
    EXPECT_EQ(refused->answer().headers.at("allow"), allow);
  }
}

TEST(Api, ModelsAreTheOneModel) {
  const Json list = server().get("/v1/models")->json();
  ASSERT_THAT(list["data"], SizeIs(1));
  EXPECT_EQ(list["data"][0]["id"], "tiny:model");
  EXPECT_EQ(list["data"][0]["max_model_len"], test::kLoopContext);
  EXPECT_EQ(list["data"][0]["meta"]["n_vocab"], 320);
  EXPECT_EQ(server().get("/v1/models/tiny:model")->json(), list["data"][0]);
  EXPECT_EQ(server().get("/v1/models/tiny%3Amodel")->json(), list["data"][0]);
  const auto other = server().get("/v1/models/gpt-5");
  EXPECT_EQ(other->answer().status, 404);
  EXPECT_EQ(other->json()["error"]["code"], "model_not_found");
}

TEST(Api, HealthStatusMetricsAndThePage) {
  server().post(kCompletions, {{"prompt", "a"}, {"max_tokens", 3}});
  EXPECT_EQ(server().get("/health")->json(), Json::parse(R"({"status": "ok"})"));
  const Json status = server().get("/status")->json();
  EXPECT_EQ(status["state"], "ready");
  EXPECT_EQ(status["identity"]["profile"], "portable");
  EXPECT_EQ(status["identity"]["synthetic"], true);
  EXPECT_EQ(status["identity"]["draft"], "none");
  EXPECT_FALSE(status["identity"]["libraries"].empty()) << "all that the engine's identity has";
  EXPECT_EQ(status["queue"], Json::parse(R"({"waiting": 0, "limit": 16})"));
  EXPECT_EQ(status["cache"]["context"], test::kLoopContext);
  EXPECT_GT(status["epoch"], 0);
  EXPECT_GT(status["last"]["output_tokens"], 0);
  EXPECT_FALSE(status.contains("load"));
  const auto metrics = server().get("/metrics");
  EXPECT_THAT(metrics->answer().content_type, HasSubstr("version=0.0.4"));
  EXPECT_THAT(metrics->answer().body, HasSubstr("\nstet_ready 1\n"));
  EXPECT_THAT(metrics->answer().body, HasSubstr("\nstet_context_tokens 400\n"));
  for (const char* path : {"/", "/index.html"}) {
    const auto page = server().get(path);
    EXPECT_EQ(page->answer().status, 200);
    EXPECT_THAT(page->answer().headers.at("content-security-policy"), HasSubstr("default-src 'none'"));
  }
}

TEST(Api, EveryRequestHasOneLineInTheLog) {
  Server own;
  const auto chat =
      own.post(kChat, {{"messages", {{{"role", "user"}, {"content", "secret"}}}}, {"max_tokens", 2}, {"user", "me"}});
  own.get("/health");
  own.get("/nothing");
  own.post(kChat, {{"messages", 5}});
  while (own.lines().size() < 5) std::this_thread::yield();  // a line may come just after its answer
  own.loop.stop(true);
  const auto lines = own.lines();
  ASSERT_THAT(lines, SizeIs(5));
  for (const std::string& line : lines) EXPECT_THAT(line, ::testing::Not(HasSubstr("secret")));
  EXPECT_THAT(lines, Contains(HasSubstr("the field user changes nothing")));
  EXPECT_THAT(lines, Contains(HasSubstr(fmt::format("#{} POST /v1/chat/completions 200", chat->request().id))));
}

TEST(Api, AFullQueueSays429) {
  Server own(test::tiny_loop(1));
  test::Gate gate;
  const auto held = test::submit_held(own.loop, test::some_request(20, 1), gate);
  const auto waiting = own.send("POST", kCompletions, Json{{"prompt", "a"}, {"max_tokens", 2}}.dump());
  while (own.loop.status().waiting == 0) std::this_thread::yield();
  const auto refused = own.post(kCompletions, {{"prompt", "a"}, {"max_tokens", 2}});
  EXPECT_EQ(refused->answer().status, 429);
  EXPECT_EQ(refused->json()["error"]["code"], "queue_full");
  EXPECT_EQ(refused->answer().headers.at("retry-after"), "1");
  gate.open();
  waiting->wait();
  EXPECT_EQ(waiting->answer().status, 200);
}

TEST(Api, WhileTheModelIsLoadedAndWhileItStops) {
  test::Gate gate;
  LoopOptions options = test::tiny_loop();
  options.engine.progress = [&](std::string_view, uint64_t, uint64_t) { gate.pass(); };
  Server own(options, false);
  while (own.get("/status")->json()["load"]["phase"] == "") std::this_thread::yield();
  for (const auto& early : {own.post(kChat, {{"messages", 5}}), own.post("/tokenize", Json::object()),
                            own.get("/v1/models"), own.get("/health")}) {
    EXPECT_EQ(early->answer().status, 503);
    EXPECT_EQ(early->answer().headers.at("retry-after"), "2");
  }
  EXPECT_EQ(own.get("/health")->json()["status"], "loading");
  EXPECT_EQ(own.get("/status")->json()["state"], "loading");
  EXPECT_EQ(own.get("/")->answer().status, 200);
  gate.open();
  test::wait_until_ready(own.loop);
  own.loop.stop(true);
  EXPECT_EQ(own.get("/health")->answer().status, 503);
  EXPECT_EQ(own.get("/status")->json()["state"], "stopping");
  const auto late = own.post(kCompletions, {{"prompt", "a"}});
  EXPECT_EQ(late->answer().status, 503);
  EXPECT_EQ(late->json()["error"]["code"], "stopping");
}

TEST(Api, AModelThatDoesNotLoadIsSaid) {
  LoopOptions options = test::tiny_loop();
  options.engine.model = "/nowhere.gguf";
  Server own(options, false);
  while (!own.loop.status().load.failed) std::this_thread::yield();
  EXPECT_EQ(own.get("/health")->json()["status"], "failed");
  const auto refused = own.post(kChat, Json::object());
  EXPECT_EQ(refused->answer().status, 503);
  EXPECT_THAT(refused->json()["error"]["message"].get<std::string>(), HasSubstr("nowhere.gguf"));
}

TEST(Api, AStreamOfWhoHasLeftEnds) {
  const Request request = test::some_request(20, 1, 0);
  Json body = completion_of(request, true);
  body["ignore_eos"] = true;
  body["max_tokens"] = nullptr;
  const uint64_t before = server().loop.status().cancelled;
  const auto stream = server().send("POST", kCompletions, body.dump());
  stream->wait_for_events(3);
  stream->leave();
  while (server().loop.status().cancelled == before) std::this_thread::yield();
  const Request next = test::some_request(25, 2);
  EXPECT_EQ(server().post(kCompletions, completion_of(next, false))->json()["choices"][0]["token_ids"],
            Json(test::fresh_answer(next).tokens));
}

TEST(Api, WhoLeftBeforeTheBodyWasReadIsCountedAsItIsLogged) {
  Server s;
  const auto left = std::make_shared<FakeExchange>("POST", kCompletions, R"({"prompt": "x"})");
  left->leave();
  s.api.handle(left);
  while (s.lines().empty()) std::this_thread::yield();
  EXPECT_THAT(s.lines(), Contains(HasSubstr(" 499 ")));
  EXPECT_THAT(s.get("/metrics")->answer().body,
              HasSubstr("stet_requests_total{endpoint=\"/v1/completions\",status=\"499\"} 1"));
  EXPECT_FALSE(left->ended());
}

// The model's template has no switch for reasoning, and does not pretend to.
TEST(Api, ASwitchThatTheTemplateLacksIsRefused) {
  for (const char* path : {kChat, "/tokenize"}) {
    Json body = Json::parse(R"({"messages": [{"role": "user", "content": "x"}], "chat_template_kwargs": {}})");
    if (path == std::string(kChat)) body["max_tokens"] = 1;
    EXPECT_EQ(server().post(path, body)->answer().status, 200) << path;
    body["chat_template_kwargs"]["enable_thinking"] = true;
    const auto refused = server().post(path, body);
    EXPECT_EQ(refused->answer().status, 400) << path;
    EXPECT_THAT(refused->json()["error"]["message"].get<std::string>(), HasSubstr("no switch for reasoning")) << path;
  }
}

// A template that drops developers, as many do in silence.
class DroppingSource : public TensorSource {
 public:
  DroppingSource() : base_(SynthSource::create("synth:tiny:q4_0")), metadata_(base_->metadata()) {
    metadata_["tokenizer.chat_template"] = {
        std::string("{% for m in messages %}{% if m.role != 'developer' %}{{ m.role + ': ' + m.content + '\\n' }}{% "
                    "endif %}{% endfor %}")};
  }
  const Metadata& metadata() const override { return metadata_; }
  const std::vector<TensorInfo>& tensors() const override { return base_->tensors(); }
  void read(const TensorInfo& t, uint64_t offset, std::span<std::byte> out) const override {
    base_->read(t, offset, out);
  }
  bool synthetic() const override { return true; }
  std::string identity() const override { return base_->identity() + " dropping"; }

 private:
  std::unique_ptr<SynthSource> base_;
  Metadata metadata_;
};

TEST(Api, AMessageThatTheTemplateDropsIsRefused) {
  const std::string path = testing::TempDir() + fmt::format("stet_dropping_{}.gguf", getpid());
  write_gguf(DroppingSource(), path, {.overwrite = true, .progress = nullptr});
  LoopOptions options = test::tiny_loop();
  options.engine.model = path;
  Server own(options);
  Json messages = Json::parse(R"([{"role": "user", "content": "x"}, {"role": "developer", "content": "Be brief."}])");
  const auto refused = own.post(kChat, {{"messages", messages}, {"stream", true}});
  EXPECT_EQ(refused->answer().status, 400);
  EXPECT_EQ(refused->json()["error"]["param"], "messages");
  EXPECT_THAT(refused->json()["error"]["message"].get<std::string>(),
              HasSubstr("message 1 (role 'developer', 9 bytes) does not reach the prompt"));
  messages[1]["role"] = "system";
  EXPECT_EQ(own.post(kChat, {{"messages", messages}, {"max_tokens", 2}})->answer().status, 200);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace stet
