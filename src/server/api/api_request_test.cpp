#include "server/api/api_request.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "server/api/api_error.h"
#include "server/api/raw_request.h"

namespace stet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr ModelLimits kLimits = {.vocab = 320, .context = 400};

const Json kHello = Json::parse(R"([{"role": "user", "content": "Hello"}])");

ApiRequest chat(Json fields = Json::object()) {
  if (!fields.contains("messages")) fields["messages"] = kHello;
  return read_chat_request(fields.dump(), kLimits);
}
ApiRequest completion(Json fields = Json::object()) {
  if (!fields.contains("prompt")) fields["prompt"] = "Hello";
  return read_completion_request(fields.dump(), kLimits);
}

// param, and the message.
std::pair<std::string, std::string> refusal(const std::function<void()>& read) {
  try {
    read();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 400);
    EXPECT_EQ(error.type, "invalid_request_error");
    return {error.param, error.what()};
  }
  return {"none", "none"};
}

void expect_refused(const std::string& fields, const std::string& param, const std::string& why, bool in_chat = true,
                    bool in_completions = true) {
  SCOPED_TRACE(fields);
  for (const bool is_chat : {true, false}) {
    if (is_chat ? !in_chat : !in_completions) continue;
    const auto [got, message] = refusal([&] { is_chat ? chat(Json::parse(fields)) : completion(Json::parse(fields)); });
    EXPECT_EQ(got, param);
    EXPECT_THAT(message, HasSubstr(why));
    EXPECT_THAT(message, HasSubstr(param)) << "the message names the field";
  }
}

TEST(ApiRequest, DefaultsAreThoseOfStetRun) {
  for (const ApiRequest& r : {chat(), completion()}) {
    EXPECT_EQ(r.request.sampling.temperature, 0.0f);
    EXPECT_EQ(r.request.sampling.top_p, 1.0f);
    EXPECT_EQ(r.request.max_tokens, 0u) << "what fits";
    EXPECT_FALSE(r.sampled() || r.stream || r.include_usage || r.return_token_ids || r.cycle_events ||
                 r.request.ignore_eos);
    EXPECT_TRUE(r.request.reuse_prefix);
    EXPECT_FALSE(r.request.top_logprobs);
    EXPECT_TRUE(r.hints.empty());
  }
}

TEST(ApiRequest, ReadsWhatItHonours) {
  const Json fields = Json::parse(
      R"({"model": "any/name", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.7,
    "top_p": 0.9, "top_k": 40, "min_p": 0.05, "presence_penalty": -0.5, "frequency_penalty": 0.25, "repetition_penalty": 1.1,
    "logit_bias": {"5": -100, "17": 2.5}, "seed": 18446744073709551615, "stop": ["a", "\n\n"], "max_tokens": 12, "ignore_eos": true,
    "return_token_ids": true, "cycle_events": true, "cache_prompt": false})");
  for (const ApiRequest& r : {chat(fields), completion(fields)}) {
    const SamplingParams& s = r.request.sampling;
    EXPECT_TRUE(r.stream && r.include_usage && r.return_token_ids && r.cycle_events && r.request.ignore_eos);
    EXPECT_FALSE(r.request.reuse_prefix);
    EXPECT_EQ(s.temperature, 0.7f);
    EXPECT_EQ(s.top_p, 0.9f);
    EXPECT_EQ(s.top_k, 40u);
    EXPECT_EQ(s.min_p, 0.05f);
    EXPECT_EQ(s.presence_penalty, -0.5f);
    EXPECT_EQ(s.frequency_penalty, 0.25f);
    EXPECT_EQ(s.repetition_penalty, 1.1f);
    EXPECT_EQ(s.logit_bias, (std::map<int32_t, float>{{5, -100.0f}, {17, 2.5f}}));
    EXPECT_EQ(s.seed, UINT64_MAX);
    EXPECT_THAT(r.request.stop, ElementsAre("a", "\n\n"));
    EXPECT_EQ(r.request.max_tokens, 12u);
  }
}

TEST(ApiRequest, NullMeansAbsent) {
  Json fields = {{"messages", kHello}, {"prompt", "Hello"}};
  Json in_chat = {{"messages", kHello}}, in_completions = {{"prompt", "Hello"}};
  for (const KnownField& field : known_fields()) {
    const bool is_chat = field.endpoint == "/v1/chat/completions";
    if (field.name == "messages" || field.name == "prompt" || !field.endpoint.starts_with("/v1/")) continue;
    (is_chat ? in_chat : in_completions)[std::string(field.name)] = nullptr;
  }
  EXPECT_EQ(refusal([&] { EXPECT_TRUE(chat(in_chat).hints.empty()); }).second, "none");
  EXPECT_EQ(refusal([&] { EXPECT_TRUE(completion(in_completions).hints.empty()); }).second, "none");
}

TEST(ApiRequest, RefusesWrongKindsAndRanges) {
  expect_refused(R"({"temperature": "hot"})", "temperature", "is a string; it must be a number from 0 to 100");
  expect_refused(R"({"temperature": -0.1})", "temperature", "is -0.1");
  expect_refused(R"({"temperature": 1e300})", "temperature", "from 0 to 100");
  expect_refused(R"({"temperature": true})", "temperature", "is a boolean");
  expect_refused(R"({"top_p": 0})", "top_p", "above 0 to 1");
  expect_refused(R"({"top_p": 1e-60})", "top_p", "above 0 to 1");
  expect_refused(R"({"top_p": 1.01})", "top_p", "above 0 to 1");
  expect_refused(R"({"top_k": -2})", "top_k", "is -2");
  expect_refused(R"({"top_k": 1.5})", "top_k", "a number with a fraction");
  expect_refused(R"({"top_k": 2147483648})", "top_k", "from 0 to 2147483647");
  expect_refused(R"({"min_p": 1.5})", "min_p", "from 0 to 1");
  expect_refused(R"({"repetition_penalty": 0})", "repetition_penalty", "from 0.01 to 100");
  expect_refused(R"({"presence_penalty": 101})", "presence_penalty", "from -100 to 100");
  expect_refused(R"({"seed": -1})", "seed", "is -1; it must be an integer from 0");
  expect_refused(R"({"seed": 1.0})", "seed", "a number with a fraction");
  expect_refused(R"({"seed": 18446744073709551616})", "seed", "");
  expect_refused(R"({"max_tokens": 0})", "max_tokens", "from 1");
  expect_refused(R"({"stream": "yes"})", "stream", "is a string; it must be true or false");
  expect_refused(R"({"model": 3})", "model", "must be a string");
  expect_refused(R"({"cache_prompt": 0})", "cache_prompt", "true or false");
  expect_refused(R"({"logit_bias": {"320": 1}})", "logit_bias.320", "0 to 319");
  expect_refused(R"({"logit_bias": {"a": 1}})", "logit_bias.a", "does not name a token");
  expect_refused(R"({"logit_bias": {"": 1}})", "logit_bias.", "does not name a token");
  expect_refused(R"({"logit_bias": {"7": 1001}})", "logit_bias.7", "from -1000 to 1000");
  expect_refused(R"({"logit_bias": {"7": 1, "07": 2}})", "logit_bias.7", "twice");
  expect_refused(R"({"logit_bias": [1]})", "logit_bias", "must be an object");
  expect_refused(R"({"stop": ""})", "stop", "is empty");
  expect_refused(R"({"stop": ["a", ""]})", "stop[1]", "is empty");
  expect_refused(R"({"stop": [1]})", "stop[0]", "must be a string");
  expect_refused(R"({"stop": 7})", "stop", "must be a string");
}

TEST(ApiRequest, FieldsThatContradictEachOther) {
  expect_refused(R"({"max_tokens": 5, "max_completion_tokens": 6})", "max_completion_tokens", "max_tokens is 5", true,
                 false);
  EXPECT_EQ(chat({{"max_tokens", 5}, {"max_completion_tokens", 5}}).request.max_tokens, 5u);
  expect_refused(R"({"top_logprobs": 3})", "top_logprobs", "set logprobs to true", true, false);
  expect_refused(R"({"logprobs": false, "top_logprobs": 3})", "top_logprobs", "logprobs is false", true, false);
  expect_refused(R"({"stream_options": {"include_usage": true}})", "stream_options", "set stream to true");
  expect_refused(R"({"cycle_events": true})", "cycle_events", "set stream to true");
}

TEST(ApiRequest, LengthsAreCutToWhatACounterHolds) {
  EXPECT_EQ(chat({{"max_completion_tokens", 128000}}).request.max_tokens, 128000u);
  EXPECT_EQ(chat({{"max_tokens", UINT64_MAX}}).request.max_tokens, UINT32_MAX);
}

TEST(ApiRequest, LogprobsOfBothForms) {
  EXPECT_EQ(chat({{"logprobs", true}}).request.top_logprobs, 0u);
  EXPECT_EQ(chat({{"logprobs", true}, {"top_logprobs", 20}}).request.top_logprobs, 20u);
  EXPECT_EQ(chat({{"logprobs", false}, {"top_logprobs", 0}}).request.top_logprobs, std::nullopt);
  EXPECT_EQ(chat({{"top_logprobs", 0}}).request.top_logprobs, std::nullopt);
  EXPECT_EQ(completion({{"logprobs", 0}}).request.top_logprobs, 0u);
  EXPECT_EQ(completion({{"logprobs", 5}}).request.top_logprobs, 5u);
  expect_refused(R"({"logprobs": true, "top_logprobs": 21})", "top_logprobs", "from 0 to 20", true, false);
  expect_refused(R"({"logprobs": 21})", "logprobs", "from 0 to 20", false, true);
  expect_refused(R"({"logprobs": 1})", "logprobs", "true or false", true, false);
}

TEST(ApiRequest, ASeedIsDrawnForSampledAnswersOnly) {
  EXPECT_EQ(chat({{"seed", 5}}).request.sampling.seed, 0u) << "greedy: it plays no part";
  EXPECT_EQ(chat({{"seed", 5}, {"temperature", 1}}).request.sampling.seed, 5u);
  EXPECT_NE(chat({{"temperature", 1}}).request.sampling.seed, chat({{"temperature", 1}}).request.sampling.seed);
}

TEST(ApiRequest, TopKAndStopInVLLMsForms) {
  EXPECT_EQ(chat({{"top_k", -1}}).request.sampling.top_k, 0u);
  EXPECT_TRUE(chat({{"stop", Json::array()}}).request.stop.empty());
  EXPECT_THAT(chat({{"stop", "\n"}}).request.stop, ElementsAre("\n"));
  EXPECT_EQ(chat({{"stop", std::vector<std::string>(64, "x")}}).request.stop.size(), 64u);
  expect_refused(Json{{"stop", std::vector<std::string>(65, "x")}}.dump(), "stop", "64 are possible");
  expect_refused(Json{{"stop", std::string(1025, 'x')}}.dump(), "stop", "1025 bytes");
}

TEST(ApiRequest, UnknownFieldsAreRefusedByName) {
  expect_refused(R"({"temprature": 0.5})", "temprature", "not known");
  expect_refused(R"({"n_predict": 5})", "n_predict", "not known");
  expect_refused(R"({"stream": true, "stream_options": {"x": 1}})", "stream_options.x", "not known");
  expect_refused(R"({"prompt": "x", "messages": [{"role": "user", "content": "x"}]})", "prompt", "not known", true,
                 false);
  const std::string longer(5000, 'x');
  const auto [param, message] = refusal([&] { chat({{longer, 1}}); });
  EXPECT_LT(param.size(), 200u);
  EXPECT_LT(message.size(), 500u);
  // A zero byte ends no message.
  const auto [zero, why] = refusal([] { chat({{std::string("a\0b\033", 4), 1}}); });
  EXPECT_EQ(zero, std::string("a\0b\033", 4));
  EXPECT_THAT(why, HasSubstr("a\\x00b\\x1b is not known"));
}

// Every field that is refused, is refused whatever its value, unless it is a neutral one; and every hint is taken.
TEST(ApiRequest, TheTablesMeanWhatTheySay) {
  const std::vector<Json> values = {1, 2.5, "x", true, false, {{"a", 1}}, Json::array({1})};
  for (const bool is_chat : {true, false}) {
    for (const auto& field : is_chat ? chat_fields() : completion_fields()) {
      const std::string name(field.rule.name);
      SCOPED_TRACE(name);
      const auto read = [&](const Json& value) {
        return is_chat ? chat({{name, value}}) : completion({{name, value}});
      };
      for (const Json& value : values) {
        if (field.rule.kind != FieldKind::hint) break;
        EXPECT_THAT(read(value).hints, ElementsAre(name));
      }
      if (field.rule.kind != FieldKind::unless) continue;
      const Json neutral = Json::parse(field.rule.neutral);
      ASSERT_TRUE(neutral.is_array());
      for (const Json& value : neutral) EXPECT_TRUE(read(value).hints.empty());
      for (const Json& value : values) {
        if (std::ranges::find(neutral, value) != neutral.end()) continue;
        const auto [param, message] = refusal([&] { read(value); });
        EXPECT_EQ(param, name);
        EXPECT_THAT(message, HasSubstr(name + " is not supported"));
      }
    }
  }
}

TEST(ApiRequest, NamesInATableAreUnique) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const KnownField& field : known_fields())
    EXPECT_TRUE(seen.emplace(field.endpoint, field.name).second) << field.name;
}

TEST(ApiRequest, PromptsOfAllForms) {
  EXPECT_EQ(std::get<std::string>(completion({{"prompt", "a\u00e9"}}).prompt), "a\u00e9");
  EXPECT_EQ(std::get<std::string>(completion({{"prompt", {"one"}}}).prompt), "one");
  EXPECT_THAT(std::get<TokenIds>(completion({{"prompt", {1, 2, 319}}}).prompt), ElementsAre(1, 2, 319));
  EXPECT_THAT(std::get<TokenIds>(completion({{"prompt", Json::array({Json::array({7})})}}).prompt), ElementsAre(7));
  expect_refused(R"({"prompt": []})", "prompt", "is empty", false);
  expect_refused(R"({"prompt": 5})", "prompt", "a string or an array", false);
  expect_refused(R"({"prompt": ["a", "b"]})", "prompt", "one prompt a request", false);
  expect_refused(R"({"prompt": [[1], [2]]})", "prompt", "one prompt a request", false);
  expect_refused(R"({"prompt": [1, "b"]})", "prompt[1]", "is a string", false);
  expect_refused(R"({"prompt": [320]})", "prompt[0]", "is 320; the model's token ids are integers from 0 to 319",
                 false);
  expect_refused(R"({"prompt": [3, -1]})", "prompt[1]", "is -1", false);
  expect_refused(R"({"prompt": [1.5]})", "prompt[0]", "is 1.5", false);
  expect_refused(R"({"prompt": [{"a": 1}]})", "prompt[0]", "an array of token ids", false);
  EXPECT_EQ(refusal([] { read_completion_request("{}", kLimits); }).first, "prompt");
  EXPECT_EQ(refusal([] { read_completion_request("[]", kLimits); }).second,
            "the body is an array; it must be an object");
}

TEST(ApiRequest, MessagesOfAllForms) {
  const ApiRequest r = chat({{"messages", Json::parse(R"([{"role": "system", "content": "Be brief."},
    {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}]},
    {"role": "user", "content": ""}, {"role": "assistant", "content": "x", "tool_calls": null, "refusal": null, "audio": null},
    {"role": "user", "content": []}])")}});
  const auto& messages = std::get<Conversation>(r.prompt);
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_EQ(messages[1].role, "developer");
  EXPECT_EQ(messages[1].content, "a\nb");
  EXPECT_EQ(messages[2].content, "");
  EXPECT_EQ(messages[4].content, "");
  EXPECT_THAT(r.hints, ElementsAre("messages[1].content[1].cache_control"));
}

TEST(ApiRequest, RefusedMessagesAreNamed) {
  const auto with = [](const std::string& message) {
    return R"({"messages": [{"role": "user", "content": "Hello"}, )" + message + "]}";
  };
  const auto expect = [&](const std::string& message, const std::string& param, const std::string& why) {
    expect_refused(with(message), "messages[1]" + param, why, true, false);
  };
  expect(R"({"role": "tool", "content": "x", "tool_call_id": "1"})", ".role", "does not run tools");
  expect(R"({"role": "wizard", "content": "x"})", ".role", "must be one of");
  expect(R"({"content": "x"})", "", "has no role");
  expect(R"({"role": "user"})", "", "has no content");
  expect(R"({"role": "assistant", "content": null})", "", "has no content");
  expect(R"({"role": "assistant", "content": "x", "tool_calls": [{"id": "1"}]})", ".tool_calls", "does not run tools");
  expect(R"({"role": "user", "content": "x", "name": "Ann"})", ".name", "chat templates show no names");
  expect(R"({"role": "user", "content": "x", "colour": 1})", ".colour", "not known");
  expect(R"({"role": "user", "content": 5})", ".content", "a string or an array of text parts");
  expect(R"({"role": "user", "content": ["x"]})", ".content[0]", "must be an object");
  expect(R"({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]})", ".content[0].type",
         "only text parts");
  expect(R"({"role": "user", "content": [{"image_url": {"url": "x"}, "type": "image_url"}]})", ".content[0].type",
         "only text parts");
  expect(R"({"role": "user", "content": [{"text": "x"}]})", ".content[0]", "has no type");
  expect(R"({"role": "user", "content": [{"type": "text"}]})", ".content[0]", "has no text");
  expect("5", "", "is an integer; it must be an object");
  expect_refused(R"({"messages": []})", "messages", "at least one message", true, false);
  expect_refused(R"({"messages": "Hello"})", "messages", "must be an array", true, false);
  EXPECT_EQ(refusal([] { read_chat_request("{}", kLimits); }).first, "messages");
}

TEST(ApiRequest, TokenizeAndDetokenize) {
  EXPECT_EQ(std::get<std::string>(read_tokenize_request(R"({"prompt": "x", "model": "m"})").prompt), "x");
  const TokenizeRequest t = read_tokenize_request(
      R"({"messages": [{"role": "user", "content": "x"}], "add_generation_prompt": false, "return_token_strs": true})");
  EXPECT_EQ(std::get<Conversation>(t.prompt).size(), 1u);
  EXPECT_FALSE(t.add_generation_prompt);
  EXPECT_TRUE(t.return_token_strs);
  EXPECT_EQ(read_tokenize_request(R"({"prompt": "x", "add_special_tokens": false})").add_special_tokens, false);
  EXPECT_EQ(refusal([] { read_tokenize_request("{}"); }).first, "prompt");
  EXPECT_EQ(refusal([] {
              read_tokenize_request(R"({"prompt": "x", "messages": [{"role": "user", "content": "x"}]})");
            }).second,
            "give either prompt or messages");
  EXPECT_EQ(refusal([] {
              read_tokenize_request(R"({"messages": [{"role": "user", "content": "x"}], "add_special_tokens": true})");
            }).first,
            "add_special_tokens");
  Hints hints;
  EXPECT_THAT(read_detokenize_request(R"({"tokens": [5, 6], "model": "m"})", kLimits, hints), ElementsAre(5, 6));
  EXPECT_TRUE(read_detokenize_request(R"({"tokens": []})", kLimits, hints).empty());
  EXPECT_EQ(refusal([&] { read_detokenize_request(R"({"tokens": [5, 320]})", kLimits, hints); }).first, "tokens[1]");
  EXPECT_EQ(refusal([&] { read_detokenize_request("{}", kLimits, hints); }).first, "tokens");
}

TEST(ApiRequest, ReasoningIsSwitchedByTheNamesOfTemplates) {
  EXPECT_EQ(chat().thinking, std::nullopt);
  EXPECT_EQ(chat({{"chat_template_kwargs", Json::object()}}).thinking, std::nullopt);
  for (const bool wanted : {true, false})
    for (const char* name : {"thinking", "enable_thinking"}) {
      const Json kwargs = {{name, wanted}};
      EXPECT_EQ(chat({{"chat_template_kwargs", kwargs}}).thinking, wanted);
      EXPECT_EQ(read_tokenize_request(Json{{"messages", kHello}, {"chat_template_kwargs", kwargs}}.dump()).thinking,
                wanted);
    }
  const auto refused = [](const std::string& fields, const std::string& param, const std::string& why) {
    expect_refused(fields, param, why, true, false);
  };
  refused(R"({"chat_template_kwargs": {"thinking": 1}})", "chat_template_kwargs.thinking", "true or false");
  refused(R"({"chat_template_kwargs": {"custom": true}})", "chat_template_kwargs.custom", "not known");
  refused(R"({"chat_template_kwargs": true})", "chat_template_kwargs", "an object");
  refused(R"({"chat_template_kwargs": {"thinking": true, "enable_thinking": false}})", "chat_template_kwargs.thinking",
          "says otherwise");
  refused(R"({"reasoning_effort": "high"})", "reasoning_effort", "unless it is \"none\"");
  refused(R"({"reasoning_effort": "none", "chat_template_kwargs": {"thinking": true}})", "reasoning_effort",
          "asks for reasoning");
  EXPECT_EQ(chat({{"reasoning_effort", "none"}}).thinking, std::nullopt);
  EXPECT_EQ(
      refusal([] { read_tokenize_request(R"({"prompt": "x", "chat_template_kwargs": {"thinking": true}})"); }).first,
      "chat_template_kwargs");
}

TEST(ApiRequest, TheDocumentationListsEveryField) {
  std::ifstream file("docs/api.md");
  ASSERT_TRUE(file) << "tests run in the project's folder";
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  for (const KnownField& field : known_fields())
    EXPECT_THAT(text, HasSubstr(fmt::format("`{}`", field.name))) << field.endpoint;
}

}  // namespace
}  // namespace stet
