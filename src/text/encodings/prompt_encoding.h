// Prompts of model families whose checkpoints come with a program instead of a chat template. ChatTemplate uses them as
// it does a template.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/provenance.h"

namespace stet {

struct Message;  // text/chat_template.h
struct ChatOptions;

struct PromptEncoding {
  uint32_t revision = 1;  // raised when the same conversation becomes another prompt: part of the identity
  // As ChatTemplate::apply(), which sees to it that every message reached the prompt. Bytes of message i have the
  // source content_source(i). Throws Error(kInput) that names the message for a role that the encoding does not know.
  Text (*apply)(const std::vector<Message>& messages, const ChatOptions& options) = nullptr;
  std::vector<std::string> tokens;  // which a vocabulary must have: prompts are made of them
  std::vector<std::string> markup;  // tokens that messages never mean, for Tokenizer::set_markers
};

// Throws Error(kUnsupported), with the list of names, when there is none called so.
PromptEncoding find_prompt_encoding(std::string_view name);

// One family each, in <id>_encoding.cpp.
#define ENCODING(id) PromptEncoding prompt_encoding_##id();
#include "text/encodings/encodings.def"
#undef ENCODING

}  // namespace stet
