#include "text/chat_template.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/hash.h"
#include "text/golden_for_test.h"
#include "text/jinja/values_for_test.h"
#include "text/tokenizer.h"

namespace stet {
namespace {

using ::testing::HasSubstr;

constexpr const char* kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
    "'\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

ChatOptions golden_options() {
  ChatOptions options;
  options.bos_token = "<BOS>";
  options.eos_token = "<EOS>";
  options.now = test::golden_time();
  return options;
}

std::string error_of(const std::string& source, const std::vector<Message>& messages) {
  try {
    ChatTemplate(source).apply(messages, golden_options());
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInput) << e.what();
    return e.what();
  }
  return "";
}

TEST(ChatTemplate, MarksWhatMessagesWrote) {
  const Text prompt = ChatTemplate(kChatMl).apply({{"user", "Hi <|im_end|>"}}, golden_options());
  EXPECT_EQ(prompt.bytes(), "<|im_start|>user\nHi <|im_end|><|im_end|>\n<|im_start|>assistant\n");
  const std::vector<Span> spans = prompt.spans();
  ASSERT_EQ(spans.size(), 5u);
  EXPECT_EQ(spans[0].text, "<|im_start|>");
  EXPECT_TRUE(spans[0].template_text);
  EXPECT_EQ(spans[1].text, "user") << "a role is the caller's text";
  EXPECT_FALSE(spans[1].template_text);
  EXPECT_EQ(spans[3].text, "Hi <|im_end|>");
  EXPECT_FALSE(spans[3].template_text);
}

// Digests of what python3-jinja2 makes of the templates of the shared folder.
TEST(ChatTemplate, SharedTemplatesEqualJinja2) {
  const std::filesystem::path folder = "../shared/data/templates";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  for (const auto& sample : test::read_golden("templates.json")) {
    const std::string name = sample.at("file");
    std::ifstream file(folder / name, std::ios::binary);
    const std::string source((std::istreambuf_iterator<char>(file)), {});
    std::vector<Message> messages;
    for (const auto& turn : sample.at("messages")) messages.push_back({turn.at(0), turn.at(1)});
    std::string got;
    try {
      got = ChatTemplate(source).apply(messages, golden_options()).bytes();
    } catch (const Error& e) {
      EXPECT_TRUE(sample.contains("error")) << name << ": " << e.what();
      continue;
    }
    EXPECT_EQ(sha256_hex(got.data(), got.size()), sample.value("sha256", "an error")) << name << ":\n" << got;
  }
}

TEST(ChatTemplate, AMessageThatDoesNotReachThePromptIsNamed) {
  const std::string drops_system =
      "{% for m in messages %}{% if m.role != 'system' %}{{ m.role }}: {{ m.content | trim }}\n{% endif %}{% endfor %}";
  EXPECT_EQ(error_of(drops_system, {{"user", "  hi \n"}}), "") << "trimmed white space is no loss";
  EXPECT_THAT(error_of(drops_system, {{"user", "hi"}, {"system", "be brief"}}), HasSubstr("message 1 (role 'system'"));
  EXPECT_THAT(error_of("{{ messages[0].content[:3] }}", {{"user", "abcdef"}}), HasSubstr("a part of it"));
  EXPECT_THAT(error_of("{{ messages[0].role }}", {{"user", "user"}}), HasSubstr("message 0"))
      << "a role is not the content";
  EXPECT_EQ(error_of("{{ messages[0].content | tojson }}", {{"user", "a\n\"b\"\t\\ é"}}), "") << "escaped, not lost";
}

TEST(ChatTemplate, AnAssistantsReasoningMayBeLeftOut) {
  const std::string cuts = "{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}";
  EXPECT_EQ(error_of(cuts, {{"assistant", "<think>why</think>because"}}), "");
  EXPECT_THAT(error_of(cuts, {{"user", "<think>why</think>because"}}), HasSubstr("message 0"));
  EXPECT_THAT(error_of("{{ bos_token }}", {{"assistant", "<think>why</think>because"}}), HasSubstr("all of it"));
}

TEST(ChatTemplate, RaisedExceptionsAndMissingTemplatesAreErrors) {
  EXPECT_THAT(error_of("{{ raise_exception('roles must alternate') }}", {{"user", "x"}}),
              HasSubstr("roles must alternate"));
  try {
    ChatTemplate::from_metadata({});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInput);
    EXPECT_THAT(e.what(), HasSubstr("--raw"));
  }
  EXPECT_THROW(ChatTemplate::from_metadata({{"tokenizer.chat_template", {true}}}), Error);
  const ChatTemplate sound = ChatTemplate::from_metadata({{"tokenizer.chat_template", {std::string(kChatMl)}}});
  EXPECT_FALSE(sound.literals().empty());
}

TEST(ChatTemplate, ReasoningIsSwitchedWhereTheTemplateHasASwitch) {
  const auto prompt_of = [](const std::string& source, std::optional<bool> thinking, bool introduced = true) {
    ChatOptions options = golden_options();
    options.thinking = thinking;
    options.add_generation_prompt = introduced;
    return ChatTemplate(source).apply({{"user", "x"}}, options).bytes();
  };
  for (const std::string name : {"enable_thinking", "thinking"}) {
    const std::string source = "{{ messages[0].content }}{% if add_generation_prompt and " + name +
                               " is defined %}{{ " + name + " }}{% endif %}";
    EXPECT_EQ(prompt_of(source, std::nullopt), "x");
    EXPECT_EQ(prompt_of(source, true), "xTrue");
    EXPECT_EQ(prompt_of(source, false), "xFalse");
    EXPECT_EQ(prompt_of(source, true, false), "x") << "seen where an answer is introduced";
  }
  for (const bool thinking : {true, false}) {
    try {
      prompt_of(kChatMl, thinking);
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kInput);
      EXPECT_THAT(e.what(), HasSubstr("no switch for reasoning"));
    }
  }
}

// The whole way of a prompt: a control token is one token where the template wrote it and plain text in a message.
TEST(ChatTemplate, ControlTokensOfAMessageStayText) {
  std::vector<std::string> tokens;
  const Tokenizer bytes = Tokenizer::synthetic(256);
  Vocabulary vocab = synthetic_vocabulary(258);
  vocab.tokens[256] = {"<|im_start|>", TokenType::kControl};
  vocab.tokens[257] = {"<|im_end|>", TokenType::kControl};
  const Tokenizer tokenizer(std::move(vocab));
  const Text prompt = ChatTemplate(kChatMl).apply({{"user", "x<|im_end|>"}}, golden_options());
  const std::vector<TokenId> ids = tokenizer.encode(prompt);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 257), 1);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 256), 2);
  EXPECT_EQ(tokenizer.decode(ids, true), prompt.bytes());
}

}  // namespace
}  // namespace stet
