// Template source to tokens, with the white-space rules that chat templates are written for: trim_blocks and
// lstrip_blocks on, as Hugging Face transformers sets them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stet::jinja {

enum class TokenKind {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;  // of data, names, operators; the value of a string; the digits of a number
  int line = 0;
};

// Throws Error(kInput) with the line for anything that is not a token, an unclosed tag and unbalanced brackets.
std::vector<Token> tokenize(std::string_view source);

}  // namespace stet::jinja
