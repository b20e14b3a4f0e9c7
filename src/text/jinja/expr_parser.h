// The expression half of the parser.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/token_stream.h"

namespace stet::jinja {

class ExprParser {
 public:
  ExprParser(TokenStream& stream, std::vector<std::string>& literals) : stream_(stream), literals_(literals) {}

  // One expression; allow_if: `a if b else c` too.
  ExprPtr parse(bool allow_if = true);
  // Expressions with commas between them become a tuple.
  ExprPtr parse_tuple(bool allow_if = true);
  // The filters that follow `value`: name(arguments) | name(arguments) ...
  ExprPtr parse_filters(ExprPtr value);
  // Checks the depth of a node whose children are complete.
  ExprPtr seal(ExprPtr expr) const;
  ExprPtr make(ExprKind kind, std::string name = {}) const;

 private:
  class Nesting;

  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_compare();
  bool next_comparison(std::string& op);
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filter);
  ExprPtr parse_primary();
  ExprPtr parse_name();
  ExprPtr parse_number();
  ExprPtr parse_string();
  ExprPtr parse_parentheses();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr value);
  ExprPtr parse_filters_and_tests(ExprPtr value);
  ExprPtr parse_attribute(ExprPtr value);
  ExprPtr parse_subscript(ExprPtr value);
  ExprPtr parse_test(ExprPtr value);
  void parse_arguments(Expr& call);
  ExprPtr binary(ExprKind kind, std::string op, ExprPtr left, ExprPtr right) const;
  bool begins_test_argument() const;

  TokenStream& stream_;
  std::vector<std::string>& literals_;
  int nesting_ = 0;
};

}  // namespace stet::jinja
