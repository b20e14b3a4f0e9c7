// Conversations to prompts, by the template that the model file carries.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "text/jinja/template.h"
#include "text/provenance.h"
#include "weights/tensor_source.h"

namespace stet {

struct Message {
  std::string role;  // "system", "user", "assistant", ...
  std::string content;
};

struct ChatOptions {
  bool add_generation_prompt = true;  // end with what introduces the assistant's answer
  std::string bos_token;              // texts of the special tokens, for templates that print them
  std::string eos_token;
  std::tm now{};                    // what a template that prints the date sees
  jinja::Variables variables = {};  // further ones, e.g. enable_thinking
};

class ChatTemplate {
 public:
  // Throws Error(kInput) or Error(kUnsupported), with the line, for a template that cannot be read.
  explicit ChatTemplate(std::string_view source) : template_(source) {}

  // The template of a model file. Throws Error(kInput) when it has none: such a model takes raw text only.
  static ChatTemplate from_metadata(const Metadata& metadata);

  // The prompt. Bytes that a message wrote are marked so. Throws Error(kInput) when the template refuses the
  // conversation, and when a message's text did not reach the prompt, which many templates do in silence; white space
  // may be trimmed, and an assistant's reasoning (up to its end marker, such as </think>) may be left out. Further
  // errors: see jinja::Template::render.
  Text apply(const std::vector<Message>& messages, const ChatOptions& options) const;

  // For Tokenizer::set_markers.
  const std::vector<std::string>& literals() const { return template_.literals(); }

 private:
  jinja::Template template_;
};

}  // namespace stet
