// DeepSeek V4 (encoding/encoding_dsv4.py of its checkpoints). What it does, and where that is known from, is written in
// tests/golden/deepseek_v4_prompts/README.md.
//
// Not here: tools, and the prefixes that ask for more reasoning, which differ between the revisions of the model.
#include "base/error.h"
#include "base/visible_text.h"
#include "text/chat_template.h"
#include "text/encodings/prompt_encoding.h"

namespace stet {
namespace {

constexpr std::string_view kBegin = "<｜begin▁of▁sentence｜>", kEnd = "<｜end▁of▁sentence｜>", kUser = "<｜User｜>",
                           kAssistant = "<｜Assistant｜>", kReminder = "<｜latest_reminder｜>", kThink = "<think>",
                           kThinkEnd = "</think>";

// The other added tokens of its tokenizer.json that are not special there: of tasks, tools, tables and earlier models.
constexpr std::string_view kMarkup[] = {
    "<｜fim▁hole｜>",
    "<｜fim▁begin｜>",
    "<｜fim▁end｜>",
    "<|EOT|>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁outputs▁begin｜>",
    "<｜tool▁outputs▁end｜>",
    "<｜tool▁output▁begin｜>",
    "<｜tool▁output▁end｜>",
    "<｜tool▁sep｜>",
    "<｜begin▁of▁repo▁name｜>",
    "<｜end▁of▁repo▁name｜>",
    "<｜begin▁of▁file▁name｜>",
    "<｜end▁of▁file▁name｜>",
    "<｜begin▁of▁file｜>",
    "<｜end▁of▁file｜>",
    "｜DSML｜",
    "<｜begin▁sys｜>",
    "<｜end▁sys｜>",
    "<｜action｜>",
    "<｜query｜>",
    "<｜authority｜>",
    "<｜domain｜>",
    "<｜task｜>",
    "<｜political｜>",
    "<｜entity｜>",
    "<｜title｜>",
    "<｜safety｜>",
    "<｜answer｜>",
    "<｜search｜>",
    "<dsml:",
    "</dsml:",
    "<｜search▁begin｜>",
    "<｜search▁end｜>",
    "<｜extracted_url｜>",
    "<｜read_url｜>",
    "<｜image2｜>",
    "<｜/table>｜",
    "<｜table｜>",
    "<｜/td｜>",
    "<｜td｜>",
    "<｜/tr｜>",
    "<｜tr｜>",
};

bool asks(const Message& m) { return m.role == "user" || m.role == "developer"; }

void check_message(size_t i, const Message& m) {
  if (m.role == "tool" || m.role == "function")
    fail(Code::kInput, "message {} has the role '{}': stet does not run tools", i, m.role);
  if (!asks(m) && m.role != "system" && m.role != "assistant" && m.role != "latest_reminder")
    fail(Code::kInput,
         "message {} has the role '{}', which DeepSeek V4 does not know: system, user, assistant, developer and "
         "latest_reminder are possible",
         i, shown_name(m.role));
  if (m.role == "developer" && m.content.empty())
    fail(Code::kInput, "message {} (role 'developer') is empty, which DeepSeek V4 does not take: leave it out", i);
}

class DeepseekV4Writer {
 public:
  DeepseekV4Writer(const std::vector<Message>& messages, const ChatOptions& options)
      : messages_(messages), options_(options), thinking_(options.thinking.value_or(false)) {
    for (size_t i = 0; i < messages.size(); ++i) {
      check_message(i, messages[i]);
      if (asks(messages[i])) asked_ = i + 1;
    }
    if (options.add_generation_prompt && (messages.empty() || !asks(messages.back())))
      fail(Code::kInput,
           "{}, and DeepSeek V4 answers a message of a user only: end with one, or ask for the prompt without what "
           "introduces an answer",
           messages.empty() ? "there is no message"
                            : fmt::format("the last message has the role '{}'", messages.back().role));
  }

  Text prompt() {
    put(kBegin);
    for (size_t i = 0; i < messages_.size(); ++i) {
      if (dropped(i)) continue;
      begin(i);
      if (messages_[i].role == "assistant") {
        answer(i);
      } else {
        put(messages_[i].content, i);
      }
      introduce_answer(i);
    }
    return std::move(out_);
  }

 private:
  void put(std::string_view markup) { out_.append(markup, kTemplateSource); }
  void put(std::string_view text, size_t message) { out_.append(text, content_source(message)); }

  // Instructions of a developer hold until the next question, when the model reasons.
  bool dropped(size_t i) const { return thinking_ && messages_[i].role == "developer" && i + 1 < asked_; }

  // Messages of a user that follow each other are one.
  void begin(size_t i) {
    const Message& m = messages_[i];
    if (m.role == "user" && i > 0 && messages_[i - 1].role == "user") return put("\n\n");
    if (asks(m)) put(kUser);
    if (m.role == "latest_reminder") put(kReminder);
  }

  // Reasoning, which ends with </think>, is dropped once another question follows.
  void answer(size_t i) {
    std::string_view text = messages_[i].content, reasoning;
    if (const size_t at = text.rfind(kThinkEnd); at != std::string_view::npos) {
      reasoning = text.substr(0, at);
      text.remove_prefix(at + kThinkEnd.size());
      if (reasoning.starts_with(kThink)) reasoning.remove_prefix(kThink.size());
    }
    if (thinking_ && i >= asked_) {
      put(reasoning, i);
      put(kThinkEnd);
    }
    put(text, i);
    put(kEnd);
  }

  // The question writes what introduces its answer.
  void introduce_answer(size_t i) {
    if (!asks(messages_[i])) return;
    size_t next = i + 1;
    while (next < messages_.size() && dropped(next)) ++next;
    if (next == messages_.size() && !options_.add_generation_prompt) return;
    if (next < messages_.size() && messages_[next].role != "assistant" && messages_[next].role != "latest_reminder")
      return;
    put(kAssistant);
    put(thinking_ && i + 1 >= asked_ ? kThink : kThinkEnd);
  }

  const std::vector<Message>& messages_;
  const ChatOptions& options_;
  const bool thinking_;
  size_t asked_ = 0;  // messages up to and with the last question
  Text out_;
};

Text encode_deepseek_v4(const std::vector<Message>& messages, const ChatOptions& options) {
  return DeepseekV4Writer(messages, options).prompt();
}

}  // namespace

PromptEncoding prompt_encoding_deepseek_v4() {
  PromptEncoding e;
  e.apply = encode_deepseek_v4;
  for (const std::string_view token : {kBegin, kEnd, kUser, kAssistant, kReminder, kThink, kThinkEnd})
    e.tokens.emplace_back(token);
  e.markup = e.tokens;
  e.markup.insert(e.markup.end(), std::begin(kMarkup), std::end(kMarkup));
  return e;
}

}  // namespace stet
