// The tokens of a template with the small questions that a parser asks.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/jinja/lexer.h"

namespace stet::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  Token next() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_.back(); }
  int line() const { return peek().line; }

  bool is(TokenKind kind) const { return peek().kind == kind; }
  bool is_op(std::string_view op) const { return is(TokenKind::kOperator) && peek().text == op; }
  bool is_name(std::string_view name) const { return is(TokenKind::kName) && peek().text == name; }

  bool skip_op(std::string_view op) {
    if (!is_op(op)) return false;
    next();
    return true;
  }
  bool skip_name(std::string_view name) {
    if (!is_name(name)) return false;
    next();
    return true;
  }
  void expect_op(std::string_view op) {
    if (!skip_op(op)) fail_expected(op);
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) fail_expected(name);
  }
  void expect(TokenKind kind, std::string_view what) {
    if (!is(kind)) fail_expected(what);
    next();
  }
  std::string expect_any_name() {
    if (!is(TokenKind::kName)) fail_expected("a name");
    return next().text;
  }

  [[noreturn]] void fail_expected(std::string_view what) const {
    fail(Code::kInput, "chat template line {}: expected {}, found {}", line(), what, describe(peek()));
  }

 private:
  static std::string describe(const Token& token) {
    switch (token.kind) {
      case TokenKind::kName:
      case TokenKind::kOperator:
      case TokenKind::kInteger:
      case TokenKind::kFloat:
        return "'" + token.text + "'";
      case TokenKind::kString:
        return "a string";
      case TokenKind::kEnd:
        return "the end of the template";
      case TokenKind::kBlockEnd:
      case TokenKind::kVariableEnd:
        return "the end of the tag";
      default:
        return "text";
    }
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace stet::jinja
