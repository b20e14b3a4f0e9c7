#include "text/jinja/expr_parser.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "text/jinja/parser.h"

namespace stet::jinja {

// Counts how deep the parser is in its own recursion.
class ExprParser::Nesting {
 public:
  explicit Nesting(ExprParser& parser) : parser_(parser) {
    if (++parser_.nesting_ > kMaxTreeDepth / 2) {
      fail(Code::kInput, "chat template line {}: expressions nest too deep", parser_.stream_.line());
    }
  }
  ~Nesting() { --parser_.nesting_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  ExprParser& parser_;
};

ExprPtr ExprParser::make(ExprKind kind, std::string name) const {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = stream_.line();
  expr->name = std::move(name);
  return expr;
}

ExprPtr ExprParser::seal(ExprPtr expr) const {
  int depth = 0;
  for (const ExprPtr& child : expr->children) depth = std::max(depth, child ? child->depth : 0);
  for (const auto& [name, child] : expr->named) depth = std::max(depth, child->depth);
  expr->depth = depth + 1;
  if (expr->depth > kMaxTreeDepth) fail(Code::kInput, "chat template line {}: an expression is too long", expr->line);
  return expr;
}

ExprPtr ExprParser::binary(ExprKind kind, std::string op, ExprPtr left, ExprPtr right) const {
  ExprPtr expr = make(kind, std::move(op));
  expr->line = left->line;
  expr->children.push_back(std::move(left));
  expr->children.push_back(std::move(right));
  return seal(std::move(expr));
}

ExprPtr ExprParser::parse(bool allow_if) {
  const Nesting nesting(*this);
  ExprPtr value = parse_or();
  while (allow_if && stream_.skip_name("if")) {
    ExprPtr expr = make(ExprKind::kIf);
    expr->children.push_back(std::move(value));
    expr->children.push_back(parse_or());
    expr->children.push_back(stream_.skip_name("else") ? parse(true) : nullptr);
    value = seal(std::move(expr));
  }
  return value;
}

ExprPtr ExprParser::parse_tuple(bool allow_if) {
  ExprPtr first = parse(allow_if);
  if (!stream_.is_op(",")) return first;
  ExprPtr tuple = make(ExprKind::kTuple);
  tuple->children.push_back(std::move(first));
  while (stream_.skip_op(",")) {
    const bool at_end = stream_.is(TokenKind::kVariableEnd) || stream_.is(TokenKind::kBlockEnd) || stream_.is_op(")");
    if (at_end) break;
    tuple->children.push_back(parse(allow_if));
  }
  return seal(std::move(tuple));
}

ExprPtr ExprParser::parse_or() {
  ExprPtr left = parse_and();
  while (stream_.skip_name("or")) left = binary(ExprKind::kOr, "or", std::move(left), parse_and());
  return left;
}

ExprPtr ExprParser::parse_and() {
  ExprPtr left = parse_not();
  while (stream_.skip_name("and")) left = binary(ExprKind::kAnd, "and", std::move(left), parse_not());
  return left;
}

ExprPtr ExprParser::parse_not() {
  const Nesting nesting(*this);
  if (!stream_.skip_name("not")) return parse_compare();
  ExprPtr expr = make(ExprKind::kNot);
  expr->children.push_back(parse_not());
  return seal(std::move(expr));
}

bool ExprParser::next_comparison(std::string& op) {
  for (const char* candidate : {"==", "!=", "<", "<=", ">", ">="}) {
    if (stream_.skip_op(candidate)) {
      op = candidate;
      return true;
    }
  }
  if (stream_.skip_name("in")) {
    op = "in";
    return true;
  }
  if (stream_.is_name("not") && stream_.peek(1).kind == TokenKind::kName && stream_.peek(1).text == "in") {
    stream_.next();
    stream_.next();
    op = "not in";
    return true;
  }
  return false;
}

ExprPtr ExprParser::parse_compare() {
  ExprPtr left = parse_sum();
  std::string op;
  if (!next_comparison(op)) return left;
  ExprPtr expr = make(ExprKind::kCompare);
  expr->children.push_back(std::move(left));
  do {
    expr->operators.push_back(op);
    expr->children.push_back(parse_sum());
  } while (next_comparison(op));
  return seal(std::move(expr));
}

ExprPtr ExprParser::parse_sum() {
  ExprPtr left = parse_concat();
  while (stream_.is_op("+") || stream_.is_op("-")) {
    std::string op = stream_.next().text;
    left = binary(ExprKind::kBinary, std::move(op), std::move(left), parse_concat());
  }
  return left;
}

ExprPtr ExprParser::parse_concat() {
  ExprPtr left = parse_product();
  while (stream_.skip_op("~")) left = binary(ExprKind::kBinary, "~", std::move(left), parse_product());
  return left;
}

ExprPtr ExprParser::parse_product() {
  ExprPtr left = parse_power();
  while (stream_.is_op("*") || stream_.is_op("/") || stream_.is_op("//") || stream_.is_op("%")) {
    std::string op = stream_.next().text;
    left = binary(ExprKind::kBinary, std::move(op), std::move(left), parse_power());
  }
  return left;
}

ExprPtr ExprParser::parse_power() {
  ExprPtr left = parse_unary(true);
  while (stream_.skip_op("**")) left = binary(ExprKind::kBinary, "**", std::move(left), parse_unary(true));
  return left;
}

ExprPtr ExprParser::parse_unary(bool with_filter) {
  const Nesting nesting(*this);
  ExprPtr value;
  if (stream_.is_op("-") || stream_.is_op("+")) {
    value = make(ExprKind::kUnary, stream_.next().text);
    value->children.push_back(parse_unary(false));
    value = seal(std::move(value));
  } else {
    value = parse_primary();
  }
  value = parse_postfix(std::move(value));
  return with_filter ? parse_filters_and_tests(std::move(value)) : std::move(value);
}

ExprPtr ExprParser::parse_primary() {
  switch (stream_.peek().kind) {
    case TokenKind::kName:
      return parse_name();
    case TokenKind::kString:
      return parse_string();
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return parse_number();
    default:
      break;
  }
  if (stream_.is_op("(")) return parse_parentheses();
  if (stream_.is_op("[")) return parse_list();
  if (stream_.is_op("{")) return parse_dict();
  stream_.fail_expected("a value");
}

ExprPtr ExprParser::parse_name() {
  ExprPtr expr = make(ExprKind::kConstant);
  const std::string name = stream_.next().text;
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    expr->constant = Value::boolean(name[0] == 't' || name[0] == 'T');
  } else if (name == "none" || name == "None") {
    expr->constant = Value::none();
  } else {
    expr->kind = ExprKind::kName;
    expr->name = name;
  }
  return expr;
}

ExprPtr ExprParser::parse_number() {
  ExprPtr expr = make(ExprKind::kConstant);
  const Token token = stream_.next();
  if (token.kind == TokenKind::kFloat) {
    double value = 0;
    std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
    expr->constant = Value::number(value);
    return expr;
  }
  int64_t value = 0;
  const auto [end, error] = std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
  if (error != std::errc())
    fail(Code::kUnsupported, "chat template line {}: {} needs more than 64 bits", token.line, token.text);
  expr->constant = Value::integer(value);
  return expr;
}

ExprPtr ExprParser::parse_string() {
  ExprPtr expr = make(ExprKind::kConstant);
  std::string text;
  while (stream_.is(TokenKind::kString)) text += stream_.next().text;
  literals_.push_back(text);
  expr->constant = Value::string(std::move(text));
  return expr;
}

ExprPtr ExprParser::parse_parentheses() {
  stream_.expect_op("(");
  if (stream_.skip_op(")")) return make(ExprKind::kTuple);
  ExprPtr value = parse_tuple();
  stream_.expect_op(")");
  return value;
}

ExprPtr ExprParser::parse_list() {
  ExprPtr list = make(ExprKind::kList);
  stream_.expect_op("[");
  while (!stream_.is_op("]")) {
    list->children.push_back(parse());
    if (!stream_.skip_op(",")) break;
  }
  stream_.expect_op("]");
  return seal(std::move(list));
}

ExprPtr ExprParser::parse_dict() {
  ExprPtr dict = make(ExprKind::kDict);
  stream_.expect_op("{");
  while (!stream_.is_op("}")) {
    dict->children.push_back(parse());
    stream_.expect_op(":");
    dict->children.push_back(parse());
    if (!stream_.skip_op(",")) break;
  }
  stream_.expect_op("}");
  return seal(std::move(dict));
}

ExprPtr ExprParser::parse_postfix(ExprPtr value) {
  for (;;) {
    if (stream_.is_op(".")) {
      value = parse_attribute(std::move(value));
    } else if (stream_.is_op("[")) {
      value = parse_subscript(std::move(value));
    } else if (stream_.is_op("(")) {
      ExprPtr call = make(ExprKind::kCall);
      call->children.push_back(std::move(value));
      parse_arguments(*call);
      value = seal(std::move(call));
    } else {
      return value;
    }
  }
}

ExprPtr ExprParser::parse_attribute(ExprPtr value) {
  ExprPtr expr = make(ExprKind::kAttribute);
  stream_.expect_op(".");
  expr->children.push_back(std::move(value));
  if (stream_.is(TokenKind::kInteger)) {
    expr->kind = ExprKind::kItem;
    expr->children.push_back(parse_number());
  } else {
    expr->name = stream_.expect_any_name();
  }
  return seal(std::move(expr));
}

ExprPtr ExprParser::parse_subscript(ExprPtr value) {
  ExprPtr expr = make(ExprKind::kItem);
  stream_.expect_op("[");
  expr->children.push_back(std::move(value));
  const auto part = [&] { return stream_.is_op(":") || stream_.is_op("]") ? nullptr : parse(); };
  ExprPtr first = part();
  if (!stream_.is_op(":")) {
    if (first == nullptr) stream_.fail_expected("an index");
    expr->children.push_back(std::move(first));
  } else {
    expr->kind = ExprKind::kSlice;
    expr->children.push_back(std::move(first));
    stream_.expect_op(":");
    expr->children.push_back(part());
    expr->children.push_back(stream_.skip_op(":") ? part() : nullptr);
  }
  stream_.expect_op("]");
  return seal(std::move(expr));
}

void ExprParser::parse_arguments(Expr& call) {
  stream_.expect_op("(");
  while (!stream_.is_op(")")) {
    if (stream_.is_op("*") || stream_.is_op("**")) {
      fail(Code::kUnsupported, "chat template line {}: arguments with {} are not supported", stream_.line(),
           stream_.peek().text);
    }
    const bool is_named =
        stream_.is(TokenKind::kName) && stream_.peek(1).kind == TokenKind::kOperator && stream_.peek(1).text == "=";
    if (is_named) {
      std::string name = stream_.next().text;
      stream_.next();
      call.named.emplace_back(std::move(name), parse());
    } else if (!call.named.empty()) {
      stream_.fail_expected("a named argument");
    } else {
      call.children.push_back(parse());
    }
    if (!stream_.skip_op(",")) break;
  }
  stream_.expect_op(")");
}

ExprPtr ExprParser::parse_filters_and_tests(ExprPtr value) {
  for (;;) {
    if (stream_.is_op("|")) {
      stream_.next();
      value = parse_filters(std::move(value));
    } else if (stream_.is_name("is")) {
      value = parse_test(std::move(value));
    } else if (stream_.is_op("(")) {
      value = parse_postfix(std::move(value));
    } else {
      return value;
    }
  }
}

ExprPtr ExprParser::parse_filters(ExprPtr value) {
  do {
    ExprPtr filter = make(ExprKind::kFilter);
    filter->name = stream_.expect_any_name();
    filter->children.push_back(std::move(value));
    if (stream_.is_op("(")) parse_arguments(*filter);
    value = seal(std::move(filter));
  } while (stream_.skip_op("|"));
  return value;
}

bool ExprParser::begins_test_argument() const {
  switch (stream_.peek().kind) {
    case TokenKind::kString:
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return true;
    case TokenKind::kName:
      for (const char* word : {"else", "or", "and", "if", "is", "in", "not"}) {
        if (stream_.is_name(word)) return false;
      }
      return true;
    default:
      return stream_.is_op("[") || stream_.is_op("{");
  }
}

ExprPtr ExprParser::parse_test(ExprPtr value) {
  stream_.expect_name("is");
  const bool negated = stream_.skip_name("not");
  ExprPtr test = make(ExprKind::kTest);
  test->name = stream_.expect_any_name();
  test->children.push_back(std::move(value));
  if (stream_.is_op("(")) {
    parse_arguments(*test);
  } else if (begins_test_argument()) {
    test->children.push_back(parse_postfix(parse_primary()));
  }
  test = seal(std::move(test));
  if (!negated) return test;
  ExprPtr expr = make(ExprKind::kNot);
  expr->children.push_back(std::move(test));
  return seal(std::move(expr));
}

}  // namespace stet::jinja
