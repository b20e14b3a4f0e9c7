// Adapters against replies of real servers (tests/golden/bench) and, where none runs here, against documented forms.
#include "lab/bench/adapter.h"

#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <sstream>

#include "base/error.h"
#include "lab/bench/loopback_for_test.h"
#include "base/strict_json.h"

namespace stet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string recorded(const std::string& name) {
  std::ifstream file("tests/golden/bench/" + name, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  EXPECT_FALSE(out.str().empty()) << name;
  return out.str();
}

std::string json_reply(const std::string& body, int status = 200) {
  return fmt::format("HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", status,
                     body.size(), body);
}

std::string stream_reply(const std::vector<std::string>& events) {
  std::string out = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& event : events) {
    const std::string text = "data: " + event + "\n\n";
    out += fmt::format("{:x}\r\n{}\r\n", text.size(), text);
  }
  return out + "0\r\n\r\n";
}

// path -> reply; every other path is 404.
class Fake {
 public:
  explicit Fake(std::map<std::string, std::string> replies)
      : replies_(std::move(replies)),
        server_([this](const std::string& request) {
          const size_t at = request.find(' ') + 1;
          const auto it = replies_.find(request.substr(at, request.find(' ', at) - at));
          return std::vector<std::string>{it == replies_.end() ? json_reply("{}", 404) : it->second};
        }),
        client_(parse_endpoint(server_.url()), "") {}

  Connected connect(const std::string& kind = "auto", const std::string& model = "") {
    return connect_server(client_, kind, model, 0);
  }
  RequestRecord ask(const PlannedRequest& request, const std::string& kind = "auto") {
    return ask_server(client_, connect(kind), request);
  }
  // The body of the last request to a path.
  Json sent(const std::string& path) const {
    Json found;
    for (const std::string& request : server_.requests())
      if (request.starts_with("POST " + path + " ")) found = Json::parse(request.substr(request.find("\r\n\r\n") + 4));
    return found;
  }

 private:
  std::map<std::string, std::string> replies_;
  Loopback server_;
  HttpClient client_;
};

std::map<std::string, std::string> llama_cpp(const std::string& answer) {
  const std::string folder = "llama_cpp/";
  return {{"/props", recorded(folder + "props.http")},
          {"/v1/models", recorded(folder + "models.http")},
          {"/health", recorded(folder + "health.http")},
          {"/status", recorded(folder + "status_404.http")},
          {"/version", recorded(folder + "version_404.http")},
          {"/apply-template", recorded(folder + "apply_template.http")},
          {"/tokenize", recorded(folder + "tokenize.http")},
          {"/completion", recorded(folder + answer)}};
}

PlannedRequest question(uint32_t max_tokens = 12) {
  PlannedRequest request;
  request.step_id = "s";
  request.step_class = "c";
  request.messages = {{"user", "What is 2+2? Answer briefly."}};
  request.max_tokens = max_tokens;
  request.sampling.seed = 1;
  return request;
}

TEST(LlamaCpp, AnAnswerThatEnds) {
  Fake fake(llama_cpp("native_stop.http"));
  const RequestRecord record = fake.ask(question());
  EXPECT_TRUE(record.complete) << record.error;
  EXPECT_EQ(record.finish_reason, "stop");
  EXPECT_EQ(record.usage.prompt_tokens, 40u);
  EXPECT_EQ(record.prompt_token_ids->size(), 40u);
  EXPECT_EQ(record.usage.cached_tokens, 0u);
  EXPECT_EQ(record.token_ids().size(), record.usage.completion_tokens);
  EXPECT_EQ(record.token_ids().back(), 2);  // the end token is one of them
  EXPECT_TRUE(record.text().starts_with("The answer"));
  ASSERT_TRUE(record.chunks[1].server_ns.has_value());
  EXPECT_GT(*record.chunks[1].server_ns, *record.chunks[0].server_ns);
  EXPECT_EQ(fake.sent("/completion")["cache_prompt"], false);
  EXPECT_EQ(fake.sent("/completion")["prompt"].size(), 40u);
  EXPECT_EQ(fake.sent("/completion")["top_k"], 0);
}

TEST(LlamaCpp, AnAnswerThatIsCutByItsLength) {
  Fake fake(llama_cpp("native_length.http"));
  const RequestRecord record = fake.ask(question(4));
  EXPECT_TRUE(record.complete);
  EXPECT_EQ(record.finish_reason, "length");
  EXPECT_EQ(record.token_ids().size(), 4u);
}

TEST(LlamaCpp, ACachedPromptIsSeen) {
  Fake fake(llama_cpp("native_cached.http"));
  EXPECT_GT(fake.ask(question(4)).usage.cached_tokens.value_or(0), 0u);
}

TEST(LlamaCpp, IdsOfSplitCharactersAreMissingAndTheCountSaysSo) {
  Fake fake(llama_cpp("native_unicode.http"));
  const RequestRecord record = fake.ask(question(16));
  EXPECT_EQ(record.usage.completion_tokens, 16u);
  EXPECT_LT(record.token_ids().size(), 16u);
}

TEST(LlamaCpp, SaysWhatItIsWithoutAPath) {
  Fake fake(llama_cpp("native_stop.http"));
  const Connected connected = fake.connect();
  EXPECT_EQ(connected.adapter->facts().name, "llama.cpp");
  EXPECT_EQ(connected.server.model, "smollm2-135m");
  const Json identity = Json::parse(connected.server.json);
  EXPECT_EQ(identity["server"], "llama.cpp");
  EXPECT_EQ(identity["model_file"], "smollm2-135m.gguf");
  EXPECT_EQ(identity["context"], 1024);
  EXPECT_EQ(identity["model_sha256"], "unproven");
}

TEST(LlamaCpp, AServerThatCannotRenderIsNamed) {
  auto replies = llama_cpp("native_stop.http");
  replies.erase("/apply-template");
  EXPECT_THAT(Fake(replies).ask(question()).error, HasSubstr("does not answer /apply-template"));
}

// Its chat completions, as a server of no known kind would be asked.
TEST(OpenAi, RecordedChatCompletionsOfLlamaCpp) {
  auto replies = llama_cpp("native_stop.http");
  replies["/v1/chat/completions"] = recorded("llama_cpp/chat_stop.http");
  Fake fake(replies);
  const RequestRecord record = fake.ask(question(), "openai");
  EXPECT_TRUE(record.complete) << record.error;
  EXPECT_EQ(record.finish_reason, "stop");
  EXPECT_EQ(record.usage.completion_tokens, 7u);
  EXPECT_EQ(record.usage.cached_tokens, 0u);
  EXPECT_TRUE(record.token_ids().empty());             // return_tokens changes nothing there
  EXPECT_EQ(record.chunks[0].channel, Channel::none);  // role only
  replies["/v1/chat/completions"] = recorded("llama_cpp/chat_cached.http");
  EXPECT_GT(Fake(replies).ask(question(3), "openai").usage.cached_tokens.value_or(0), 0u);
  replies["/v1/chat/completions"] = recorded("llama_cpp/chat_too_long.http");
  const RequestRecord refused = Fake(replies).ask(question(3), "openai");
  EXPECT_EQ(refused.http_status, 400);
  EXPECT_THAT(refused.error, HasSubstr("exceeds the available context size"));
}

TEST(OpenAi, RecordedRepliesOfLlamaCppPython) {
  std::map<std::string, std::string> replies = {
      {"/v1/models", recorded("llama_cpp_python/models.http")},
      {"/props", recorded("llama_cpp_python/props_404.http")},
      {"/v1/chat/completions", recorded("llama_cpp_python/chat_length.http")}};
  Fake fake(replies);
  EXPECT_EQ(fake.connect().adapter->facts().name, "openai");
  const RequestRecord record = fake.ask(question(5));
  EXPECT_TRUE(record.complete) << record.error;
  EXPECT_EQ(record.finish_reason, "length");
  EXPECT_TRUE(record.text().starts_with("The answer to"));
  EXPECT_FALSE(record.usage.cached_tokens.has_value());
  // It answers a prompt that is too long with a stream that is empty and well-formed.
  replies["/v1/chat/completions"] = recorded("llama_cpp_python/chat_too_long.http");
  const RequestRecord empty = Fake(replies).ask(question(5));
  EXPECT_FALSE(empty.complete);
  EXPECT_THAT(empty.error, HasSubstr("without saying that the answer is complete"));
}

std::map<std::string, std::string> vllm(const std::vector<std::string>& events) {
  return {
      {"/version", json_reply(R"({"version":"0.18.2"})")},
      {"/v1/models",
       json_reply(
           R"({"object":"list","data":[{"id":"m","object":"model","owned_by":"vllm","root":"/data/models/m","max_model_len":4096}]})")},
      {"/v1/chat/completions", stream_reply(events)}};
}

TEST(Vllm, DocumentedForm) {
  Fake fake(vllm(
      {R"({"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":[5,6,7]})",
       R"({"id":"c","choices":[{"index":0,"delta":{"reasoning":"hm"},"finish_reason":null,"token_ids":[9,10]}]})",
       R"({"id":"c","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null,"token_ids":[11]}]})",
       R"({"id":"c","choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop","stop_reason":null,"token_ids":[2]}]})",
       R"({"id":"c","choices":[],"usage":{"prompt_tokens":3,"total_tokens":7,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":0}}})",
       "[DONE]"}));
  const RequestRecord record = fake.ask(question());
  EXPECT_TRUE(record.complete) << record.error;
  EXPECT_THAT(record.token_ids(), ElementsAre(9, 10, 11, 2));
  EXPECT_THAT(*record.prompt_token_ids, ElementsAre(5, 6, 7));
  EXPECT_EQ(record.chunks[1].channel, Channel::reasoning);
  EXPECT_EQ(record.chunks[3].channel, Channel::content);  // the end token, without text
  EXPECT_EQ(record.chunks[4].channel, Channel::none);
  EXPECT_EQ(record.usage.cached_tokens, 0u);
  EXPECT_EQ(record.text(), "hi");
  const Json body = fake.sent("/v1/chat/completions");
  EXPECT_EQ(body["return_token_ids"], true);
  EXPECT_EQ(body["cache_salt"].get<std::string>().size(), 43u);
  const Json identity = Json::parse(fake.connect().server.json);
  EXPECT_EQ(identity["server_version"], "0.18.2");
  EXPECT_EQ(identity["model_root"], "m");
}

TEST(Vllm, AbsentDetailsStayAbsent) {
  const RequestRecord record =
      Fake(vllm({R"({"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"length","token_ids":[1]}]})",
                 R"({"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1,"prompt_tokens_details":null}})",
                 "[DONE]"}))
          .ask(question(1));
  EXPECT_TRUE(record.complete);
  EXPECT_FALSE(record.usage.cached_tokens.has_value());
}

TEST(Ollama, DocumentedForm) {
  Fake fake(
      {{"/api/version", json_reply(R"({"version":"0.12.3"})")},
       {"/api/tags",
        json_reply(
            R"({"models":[{"name":"smollm2:135m","model":"smollm2:135m","digest":"9077fe9d2ae1","details":{"format":"gguf","quantization_level":"F16"}}]})")},
       {"/v1/models",
        json_reply(R"({"object":"list","data":[{"id":"smollm2:135m","object":"model","owned_by":"library"}]})")},
       {"/v1/chat/completions",
        stream_reply({R"({"choices":[{"index":0,"delta":{"role":"assistant","content":"4"},"finish_reason":null}]})",
                      R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]})",
                      R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}})",
                      "[DONE]"})}});
  const Connected connected = fake.connect();
  EXPECT_EQ(connected.adapter->facts().name, "ollama");
  EXPECT_EQ(Json::parse(connected.server.json)["model_digest"], "9077fe9d2ae1");
  const RequestRecord record = fake.ask(question());
  EXPECT_TRUE(record.complete) << record.error;
  EXPECT_FALSE(record.usage.cached_tokens.has_value());
  EXPECT_EQ(record.chunks[1].channel, Channel::none);
}

std::map<std::string, std::string> ours(const std::vector<std::string>& events) {
  return {
      {"/status",
       json_reply(
           R"({"state":"ready","identity":{"model":"SmolLM2","model_sha256":"ab","tokenizer_sha256":"cd","draft":"ngram"},"active":null})")},
      {"/v1/models", json_reply(R"({"object":"list","data":[{"id":"smollm2","object":"model"}]})")},
      {"/v1/chat/completions", stream_reply(events)}};
}

TEST(Stet, CyclesClocksAndContext) {
  Fake fake(ours(
      {R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""},"token_ids":[]}],"prompt_token_ids":[1,2]})",
       R"({"choices":[{"index":0,"delta":{}}],"stet":{"stage":"prefill","done":1,"total":2}})",
       R"({"choices":[{"index":0,"delta":{"content":"ab"},"token_ids":[3,4]}],"stet":{"cycle":0,"depth":3,"accepted":1,"token_ids":[3,4],"server_ns":77}})",
       R"({"choices":[{"index":0,"delta":{},"finish_reason":"length","token_ids":[]}],"stet":{"finish":"context"}})",
       R"({"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}})",
       "[DONE]"}));
  const RequestRecord record = fake.ask(question());
  EXPECT_TRUE(record.complete) << record.error;
  EXPECT_EQ(record.chunks[0].channel, Channel::none);
  EXPECT_EQ(record.chunks[1].channel, Channel::none);
  EXPECT_EQ(record.chunks[2].server_ns, 77);
  EXPECT_EQ(record.chunks[2].depth, 3u);
  EXPECT_EQ(record.chunks[2].accepted, 1u);
  EXPECT_EQ(record.finish_reason, "context");
  const Json body = fake.sent("/v1/chat/completions");
  EXPECT_EQ(body["cache_prompt"], false);
  EXPECT_EQ(body["cycle_events"], true);
  EXPECT_EQ(Json::parse(fake.connect().server.json)["model_sha256"], "ab");
}

TEST(Stet, AnErrorAfterTheFirstByte) {
  const RequestRecord record = Fake(ours({R"({"choices":[{"index":0,"delta":{"content":"a"},"token_ids":[1]}]})",
                                          R"({"error":{"message":"a logit is not finite"}})"}))
                                   .ask(question());
  EXPECT_FALSE(record.complete);
  EXPECT_EQ(record.error, "the server reports: a logit is not finite");
  EXPECT_THAT(record.token_ids(), ElementsAre(1));
}

TEST(Stet, StreamsThatLieAreRefused) {
  const std::string good = R"({"choices":[{"index":0,"delta":{"content":"a"},"token_ids":[1]}]})";
  const std::map<std::string, std::vector<std::string>> lies = {
      {"no JSON object", {good, "{\"choices\":", "[DONE]"}},
      {"after [DONE]", {good, "[DONE]", good}},
      {"more than one choice", {R"({"choices":[{"index":0,"delta":{}},{"index":1,"delta":{}}]})", "[DONE]"}},
      {"token ids holds something",
       {R"({"choices":[{"index":0,"delta":{"content":"a"},"token_ids":[1.5]}]})", "[DONE]"}},
      {"without saying that the answer is complete", {good}},
  };
  for (const auto& [why, events] : lies) {
    const RequestRecord record = Fake(ours(events)).ask(question());
    EXPECT_FALSE(record.complete) << why;
    EXPECT_THAT(record.error, HasSubstr(why));
  }
}

TEST(Stet, TheClientLeavesWhenItHasEnough) {
  std::vector<std::string> events;
  for (int i = 0; i < 20; ++i)
    events.push_back(fmt::format(R"({{"choices":[{{"index":0,"delta":{{"content":"a"}},"token_ids":[{}]}}]}})", i));
  Fake fake(ours(events));
  PlannedRequest request = question();
  request.cancel_after_tokens = 3;
  const RequestRecord record = fake.ask(request);
  EXPECT_TRUE(record.cancelled_by_client);
  EXPECT_FALSE(record.complete);
  EXPECT_EQ(record.error, "");
  EXPECT_GE(record.token_ids().size(), 3u);
  request.cancel_after_tokens = 0;
  EXPECT_TRUE(fake.ask(request).cancelled_by_client);
}

TEST(Connect, SaysWhatIsWrong) {
  const auto says = [](Fake&& fake, const std::string& kind, const std::string& model) -> std::string {
    try {
      fake.connect(kind, model);
    } catch (const Error& e) {
      return e.what();
    }
    return "connected";
  };
  EXPECT_THAT(says(Fake({}), "auto", ""), HasSubstr("of no known kind"));
  EXPECT_THAT(says(Fake({{"/v1/models", json_reply("{}", 401)}}), "auto", ""), HasSubstr("--api-key-file"));
  EXPECT_THAT(says(Fake(llama_cpp("native_stop.http")), "vllm", ""), HasSubstr("is no vllm"));
  EXPECT_THAT(says(Fake(llama_cpp("native_stop.http")), "vlm", ""),
              HasSubstr("choose auto, stet, llama.cpp, vllm, ollama, openai"));
  EXPECT_THAT(says(Fake(llama_cpp("native_stop.http")), "auto", "other"),
              HasSubstr("choose one with --model-id: smollm2-135m"));
  const std::string two = R"({"data":[{"id":"a"},{"id":"b"}]})";
  EXPECT_THAT(says(Fake({{"/v1/models", json_reply(two)}}), "auto", ""), HasSubstr("a, b"));
  EXPECT_EQ(says(Fake({{"/v1/models", json_reply(two)}}), "auto", "b"), "connected");
  EXPECT_THAT(says(Fake({{"/v1/models", json_reply("{}", 200)}, {"/status", json_reply(R"({"state":"loading"})")}}),
                   "auto", ""),
              HasSubstr("not ready after 0 s"));
}

TEST(PlannedRequest, SurvivesItsJson) {
  PlannedRequest request = question();
  request.sampling.temperature = 0.8f;
  request.sampling.top_p = 0.95f;
  request.sampling.logit_bias[7] = -1.5f;
  request.stop = {"\n", "x"};
  request.ignore_eos = true;
  request.cold = false;
  request.cancel_after_tokens = 0;
  const std::string json = planned_request_json(request);
  EXPECT_EQ(planned_request_json(parse_planned_request(json, "test")), json);
  EXPECT_EQ(sampling_json(request),
            R"({"temperature":0.8,"seed":1,"top_p":0.95,"logit_bias":{"7":-1.5},"stop":["\n","x"],"ignore_eos":true})");
  EXPECT_EQ(sampling_json(question()), R"({"temperature":0,"seed":1})");
}

}  // namespace
}  // namespace stet
