#include "text/chat_template.h"

#include <algorithm>

#include "base/error.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace stet {
namespace {

using jinja::Value;

// Markers behind which an assistant's answer begins; what stands before them is reasoning.
constexpr std::string_view kReasoningEnds[] = {"</think>", "<channel|>", "[/THINK]", "</seed:think>"};

constexpr std::string_view kTemplateKey = "tokenizer.chat_template";
constexpr std::string_view kEncodingKey = "tokenizer.chat_encoding";

Value to_value(const std::vector<Message>& messages) {
  std::vector<Value> list;
  for (size_t i = 0; i < messages.size(); ++i) {
    jinja::Dict dict;
    dict.set(Value::string("role"), Value::string(messages[i].role, kUntrustedSource));
    dict.set(Value::string("content"), Value::string(messages[i].content, content_source(i)));
    list.push_back(Value::dict(std::move(dict)));
  }
  return Value::list(std::move(list));
}

// The part of a message that has to reach the prompt.
std::string_view required_text(const Message& message) {
  std::string_view text = message.content;
  if (message.role != "assistant") return text;
  for (std::string_view marker : kReasoningEnds) {
    const size_t at = text.rfind(marker);
    if (at != std::string_view::npos) text.remove_prefix(at + marker.size());
  }
  return text;
}

// What each message contributed to the prompt.
std::vector<std::string> collect(const Text& prompt, size_t messages) {
  std::vector<std::string> out(messages);
  size_t begin = 0;
  for (const Text::Run& run : prompt.runs()) {
    const bool is_content = run.source > kUntrustedSource;
    if (is_content) out[run.source - kUntrustedSource - 1].append(prompt.bytes(), begin, run.end - begin);
    begin = run.end;
  }
  return out;
}

// Whether `wanted` without white space is a subsequence of `got`: a template may trim, escape and cut, but not drop.
bool reached(std::string_view wanted, std::string_view got) {
  size_t at = 0;
  for (size_t i = 0; i < wanted.size();) {
    const CodePoint c = decode_utf8(wanted.substr(i));
    const std::string_view character = wanted.substr(i, c.bytes);
    i += c.bytes;
    if ((char_classes(c.value) & kWhitespace) != 0 || c.value < 0x20) continue;
    const size_t found = got.find(character, at);
    if (found == std::string_view::npos) return false;
    at = found + character.size();
  }
  return true;
}

void check_messages_reached(const std::vector<Message>& messages, const Text& prompt) {
  const std::vector<std::string> parts = collect(prompt, messages.size());
  for (size_t i = 0; i < messages.size(); ++i) {
    if (reached(required_text(messages[i]), parts[i])) continue;
    fail(Code::kInput,
         "message {} (role '{}', {} bytes) does not reach the prompt: the model's chat template leaves out {}. Use "
         "another role "
         "or move the text into a user message",
         i, messages[i].role, messages[i].content.size(), parts[i].empty() ? "all of it" : "a part of it");
  }
}

}  // namespace

ChatTemplate ChatTemplate::from_metadata(const Metadata& metadata) {
  for (const std::string_view key : {kTemplateKey, kEncodingKey}) {
    const auto found = metadata.find(std::string(key));
    if (found == metadata.end()) continue;
    const auto* text = std::get_if<std::string>(&found->second.value);
    if (text == nullptr) fail(Code::kInput, "{} must be a string", key);
    if (key == kTemplateKey) return ChatTemplate(*text);
    PromptEncoding encoding = find_prompt_encoding(*text);
    return ChatTemplate(fmt::format("encoding {} revision {}", *text, encoding.revision), std::move(encoding));
  }
  fail(Code::kInput, "the model file has no chat template ({}); give the exact text with --raw", kTemplateKey);
}

bool ChatTemplate::in(const Metadata& metadata) {
  return metadata.contains(std::string(kTemplateKey)) || metadata.contains(std::string(kEncodingKey));
}

const std::vector<std::string>& ChatTemplate::literals() const {
  const auto* encoding = std::get_if<PromptEncoding>(&how_);
  return encoding != nullptr ? encoding->markup : std::get<jinja::Template>(how_).literals();
}

void ChatTemplate::check_vocabulary(const Tokenizer& tokenizer) const {
  const auto* encoding = std::get_if<PromptEncoding>(&how_);
  if (encoding == nullptr) return;
  for (const std::string& token : encoding->tokens) {
    const std::vector<TokenId> ids = tokenizer.encode(Text(token, kTemplateSource), {.missing = MissingByte::kDrop});
    if (ids.size() != 1 || tokenizer.token_bytes(ids[0], true) != token)
      fail(Code::kInput,
           "the vocabulary has no token '{}', of which the prompts of this model family are made: the tokenizer is of "
           "another model; get it again, or give the exact text with --raw",
           token);
  }
}

Text ChatTemplate::render(const jinja::Template& chat, const std::vector<Message>& messages,
                          const ChatOptions& options) const {
  jinja::Variables variables = options.variables;
  variables.emplace_back("messages", to_value(messages));
  variables.emplace_back("bos_token", Value::string(options.bos_token));
  variables.emplace_back("eos_token", Value::string(options.eos_token));
  const auto with = [&](bool introduced, std::optional<bool> thinking) {
    jinja::Variables all = variables;
    all.emplace_back("add_generation_prompt", Value::boolean(introduced));
    for (const char* name : {"enable_thinking", "thinking"})  // the names in use
      if (thinking) all.emplace_back(name, Value::boolean(*thinking));
    return chat.render(all, options.now);
  };
  // A template that has neither name would drop the wish in silence.
  if (options.thinking && with(true, true).bytes() == with(true, false).bytes())
    fail(Code::kInput,
         "the model's chat template has no switch for reasoning: the prompt is the same with and without it");
  return with(options.add_generation_prompt, options.thinking);
}

Text ChatTemplate::apply(const std::vector<Message>& messages, const ChatOptions& options) const {
  const auto* encoding = std::get_if<PromptEncoding>(&how_);
  Text prompt = encoding != nullptr ? encoding->apply(messages, options)
                                    : render(std::get<jinja::Template>(how_), messages, options);
  check_messages_reached(messages, prompt);
  return prompt;
}

}  // namespace stet
