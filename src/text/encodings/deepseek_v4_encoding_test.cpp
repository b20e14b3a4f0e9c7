#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/error.h"
#include "base/strict_json.h"
#include "text/chat_template.h"
#include "text/golden_for_test.h"
#include "text/tokenizer.h"
#include "weights/hf/tokenizer.h"

namespace stet {
namespace {

using ::testing::HasSubstr;

const std::string kGolden = "tests/golden/deepseek_v4_prompts/";

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path << " cannot be read; run the tests in the root of the source tree";
  return std::string(std::istreambuf_iterator<char>(file), {});
}

const nlohmann::json& golden() {
  static const nlohmann::json all = nlohmann::json::parse(read_file(kGolden + "prompts.json"));
  return all;
}

ChatTemplate deepseek() {
  return ChatTemplate::from_metadata({{"tokenizer.chat_encoding", {std::string("deepseek_v4")}}});
}

// As the engine has it.
Tokenizer tokenizer_of(const LargeJson& file) {
  Metadata metadata;
  add_hf_tokenizer(file, "tokenizer.json", 700, {.bos = 0, .pad = {}, .eos = {1}}, metadata);
  Tokenizer tokenizer(metadata);
  tokenizer.set_markers(deepseek().literals());
  return tokenizer;
}
LargeJson small_file() { return parse_large_json(read_file(kGolden + "tokenizer.json"), "tokenizer.json"); }
const Tokenizer& small() {
  static const Tokenizer tokenizer = tokenizer_of(small_file());
  return tokenizer;
}

std::vector<Message> messages_of(const nlohmann::json& list) {
  std::vector<Message> out;
  for (const auto& m : list) out.push_back({m.at("role"), m.at("content")});
  return out;
}

ChatOptions options_of(const nlohmann::json& sample) {
  ChatOptions options;
  options.add_generation_prompt = sample.at("add_generation_prompt");
  options.thinking = sample.at("thinking").get<bool>();
  return options;
}

std::string refusal_of(const std::vector<Message>& messages, const ChatOptions& options = {}) {
  try {
    return "none: " + deepseek().apply(messages, options).bytes();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInput) << e.what();
    return e.what();
  }
}

TEST(DeepseekV4Encoding, PromptsAreThoseOfTheReference) {
  size_t refused = 0;
  for (const auto& sample : golden().at("cases")) {
    SCOPED_TRACE(sample.dump());
    const std::vector<Message> messages = messages_of(sample.at("messages"));
    if (sample.contains("refused")) {
      const std::string role = sample.at("refused");
      EXPECT_THAT(refusal_of(messages, options_of(sample)),
                  HasSubstr(role == "empty" ? "there is no message" : "role '" + role + "'"));
      ++refused;
      continue;
    }
    const Text prompt = deepseek().apply(messages, options_of(sample));
    EXPECT_EQ(prompt.bytes(), sample.at("text").get<std::string>());
    EXPECT_EQ(small().encode(prompt), sample.at("ids").get<std::vector<TokenId>>());
  }
  EXPECT_GT(golden().at("cases").size(), 150u);
  EXPECT_GT(refused, 15u);
}

TEST(DeepseekV4Encoding, ChatIsTheDefault) {
  const std::vector<Message> messages = {{"system", "Be brief."}, {"user", "hello"}};
  EXPECT_EQ(deepseek().apply(messages, {}).bytes(),
            "<｜begin▁of▁sentence｜>Be brief.<｜User｜>hello<｜Assistant｜></think>");
}

// Every added token, in a text of every role: none of its ids may come out of it.
TEST(DeepseekV4Encoding, MarkupOfAMessageStaysText) {
  std::map<TokenId, std::string> markup;
  for (const std::string text : golden().at("markup")) {
    const std::vector<TokenId> ids = small().encode(Text(text, kTemplateSource));
    ASSERT_EQ(ids.size(), 1u) << text;
    markup[ids[0]] = text;
  }
  ASSERT_EQ(markup.size(), golden().at("markup").size());
  const auto count = [&](const std::vector<Message>& messages) {
    ChatOptions options;
    options.thinking = true;
    const Text prompt = deepseek().apply(messages, options);
    const std::vector<TokenId> ids = small().encode(prompt);
    EXPECT_EQ(small().decode(ids, true), prompt.bytes());
    std::map<std::string, int> counts;
    for (const TokenId id : ids)
      if (markup.contains(id)) ++counts[markup[id]];
    return counts;
  };
  const auto conversation = [](const std::string& text) {
    return std::vector<Message>{{"system", text}, {"latest_reminder", text},
                                {"user", text},   {"assistant", text},
                                {"user", text},   {"user", text}};
  };
  const std::map<std::string, int> wanted = count(conversation("x"));
  EXPECT_EQ(wanted.at("<｜User｜>"), 2);
  EXPECT_EQ(wanted.at("<think>"), 1);
  for (const auto& [id, text] : markup) EXPECT_EQ(count(conversation(text + "y " + text)), wanted) << text;
}

TEST(DeepseekV4Encoding, RolesAreNamed) {
  EXPECT_THAT(refusal_of({{"user", "a"}, {"tool", "{}"}}), HasSubstr("message 1 has the role 'tool'"));
  EXPECT_THAT(refusal_of({{"narrator", "a"}, {"user", "a"}}), HasSubstr("message 0 has the role 'narrator'"));
  EXPECT_THAT(refusal_of({{"user", "a"}, {"assistant", "b"}}), HasSubstr("the last message has the role 'assistant'"));
  EXPECT_THAT(refusal_of({{"developer", ""}}), HasSubstr("message 0 (role 'developer') is empty"));
}

TEST(DeepseekV4Encoding, ATemplateOfTheFolderWins) {
  const Metadata both = {{"tokenizer.chat_template", {std::string("{{ messages[0].content }}")}},
                         {"tokenizer.chat_encoding", {std::string("deepseek_v4")}}};
  EXPECT_EQ(ChatTemplate::from_metadata(both).apply({{"user", "x"}}, {}).bytes(), "x");
  EXPECT_TRUE(ChatTemplate::in({{"tokenizer.chat_encoding", {std::string("deepseek_v4")}}}));
  EXPECT_FALSE(ChatTemplate::in({}));
  EXPECT_NE(ChatTemplate::from_metadata(both).identity(), deepseek().identity());
  try {
    ChatTemplate::from_metadata({{"tokenizer.chat_encoding", {std::string("deepseek_v9")}}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUnsupported);
    EXPECT_THAT(e.what(), HasSubstr("there are: deepseek_v4"));
  }
  EXPECT_THROW(ChatTemplate::from_metadata({{"tokenizer.chat_encoding", {true}}}), Error);
}

TEST(DeepseekV4Encoding, AVocabularyOfAnotherModelIsRefused) {
  deepseek().check_vocabulary(small());
  LargeJson file = small_file();
  for (auto& token : file["added_tokens"])
    if (token["content"] == "<｜Assistant｜>") token["content"] = "<｜Assistent｜>";
  try {
    deepseek().check_vocabulary(tokenizer_of(file));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInput);
    EXPECT_THAT(e.what(), HasSubstr("has no token '<｜Assistant｜>'"));
  }
  ChatTemplate("{{ messages }}").check_vocabulary(tokenizer_of(file));  // a template says nothing about tokens
}

// A template that others wrote for the same model, where it does the same.
TEST(DeepseekV4Encoding, EqualsATemplateForTheModel) {
  const std::string path = "../shared/data/templates/deepseek-ai-DeepSeek-V4.jinja";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const ChatTemplate jinja(read_file(path));
  // It has no developers and reminders, gathers all systems, and lets every answer introduce itself.
  const std::set<std::string> same = {"one user",
                                      "system and user",
                                      "turns",
                                      "users that follow each other",
                                      "users around an answer",
                                      "an empty user",
                                      "scripts",
                                      "markup in a user's text"};
  size_t compared = 0;
  for (const auto& sample : golden().at("cases")) {
    if (!same.contains(sample.at("name"))) continue;
    ChatOptions options = options_of(sample);
    options.bos_token = "<｜begin▁of▁sentence｜>";
    options.variables.emplace_back("drop_thinking", jinja::Value::boolean(true));
    EXPECT_EQ(jinja.apply(messages_of(sample.at("messages")), options).bytes(), sample.at("text").get<std::string>())
        << sample;
    ++compared;
  }
  EXPECT_EQ(compared, 4 * same.size());
}

}  // namespace
}  // namespace stet
