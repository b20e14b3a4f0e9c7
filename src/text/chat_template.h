// Conversations to prompts, by the template that the model file carries or the encoding that its family has.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "text/encodings/prompt_encoding.h"
#include "text/jinja/template.h"
#include "text/provenance.h"
#include "weights/tensor_source.h"

namespace stet {

struct Message {
  std::string role;  // "system", "user", "assistant", ...
  std::string content;
};

// The source of the bytes that message i wrote: each has its own, so that it can be told which reached the prompt.
inline Source content_source(size_t i) { return kUntrustedSource + 1 + static_cast<Source>(i); }

struct ChatOptions {
  bool add_generation_prompt = true;  // end with what introduces the assistant's answer
  std::string bos_token;              // texts of the special tokens, for templates that print them
  std::string eos_token;
  std::tm now{};  // what a template that prints the date sees
  // Reason before the answer, or answer at once; nothing: as the model does by itself.
  std::optional<bool> thinking = {};
  jinja::Variables variables = {};  // further ones, for a template
};

class Tokenizer;

class ChatTemplate {
 public:
  // Throws Error(kInput) or Error(kUnsupported), with the line, for a template that cannot be read.
  explicit ChatTemplate(std::string_view source) : name_(source), how_(jinja::Template(source)) {}

  // The template of a model file (tokenizer.chat_template), else the encoding that it names (tokenizer.chat_encoding).
  // Throws Error(kInput) when it has neither: such a model takes raw text only.
  static ChatTemplate from_metadata(const Metadata& metadata);
  static bool in(const Metadata& metadata);  // whether it has one of them

  // The prompt. Bytes that a message wrote are marked so. Throws Error(kInput) when the template refuses the
  // conversation, when it has no switch for options.thinking (enable_thinking and thinking are tried), and when a
  // message's text did not reach the prompt, which many templates do in silence; white space may be trimmed, and an
  // assistant's reasoning (up to its end marker, such as </think>) may be left out. Further errors: see
  // jinja::Template::render.
  Text apply(const std::vector<Message>& messages, const ChatOptions& options) const;

  // For Tokenizer::set_markers.
  const std::vector<std::string>& literals() const;

  // Throws Error(kInput) when the vocabulary lacks a token that an encoding writes: its prompts would be mere text.
  // Which texts of a template are meant as tokens, nobody knows.
  void check_vocabulary(const Tokenizer& tokenizer) const;

  // What prompts depend on: the text of the template, or name and revision of the encoding.
  const std::string& identity() const { return name_; }

 private:
  ChatTemplate(std::string name, PromptEncoding encoding) : name_(std::move(name)), how_(std::move(encoding)) {}
  Text render(const jinja::Template& chat, const std::vector<Message>& messages, const ChatOptions& options) const;

  std::string name_;
  std::variant<jinja::Template, PromptEncoding> how_;
};

}  // namespace stet
