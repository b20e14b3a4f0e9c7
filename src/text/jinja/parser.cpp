#include "text/jinja/parser.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "text/jinja/expr_parser.h"

namespace stet::jinja {
namespace {

class Parser {
 public:
  Parser(std::string_view source, std::vector<std::string>& literals)
      : stream_(tokenize(source)), exprs_(stream_, literals), literals_(literals) {}

  Body run() {
    Body body = parse_body({});
    if (!stream_.is(TokenKind::kEnd)) stream_.fail_expected("the end of the template");
    return body;
  }

 private:
  StmtPtr make(StmtKind kind) const {
    auto stmt = std::make_unique<Stmt>();
    stmt->kind = kind;
    stmt->line = stream_.line();
    return stmt;
  }

  bool at_tag(std::initializer_list<std::string_view> names) const {
    if (!stream_.is(TokenKind::kBlockBegin) || stream_.peek(1).kind != TokenKind::kName) return false;
    return std::find(names.begin(), names.end(), stream_.peek(1).text) != names.end();
  }

  void end_tag() { stream_.expect(TokenKind::kBlockEnd, "the end of the tag"); }

  // Statements up to a tag named in `ends`, which is not taken, or the end of the template.
  Body parse_body(std::initializer_list<std::string_view> ends) {
    if (++nesting_ > kMaxTreeDepth / 4) {
      fail(Code::kInput, "chat template line {}: blocks nest too deep", stream_.line());
    }
    Body body;
    while (!stream_.is(TokenKind::kEnd) && !at_tag(ends)) body.push_back(parse_statement());
    --nesting_;
    return body;
  }

  // The body of a block and its end tag.
  Body parse_block(std::string_view end) {
    Body body = parse_body({end});
    take_tag(end);
    return body;
  }

  void take_tag(std::string_view name) {
    if (!at_tag({name})) stream_.fail_expected(name);
    stream_.next();
    stream_.next();
    if (name == "endmacro" && stream_.is(TokenKind::kName)) stream_.next();
    end_tag();
  }

  StmtPtr parse_statement() {
    if (stream_.is(TokenKind::kData)) {
      StmtPtr stmt = make(StmtKind::kData);
      stmt->text = stream_.next().text;
      literals_.push_back(stmt->text);
      return stmt;
    }
    if (stream_.is(TokenKind::kVariableBegin)) {
      StmtPtr stmt = make(StmtKind::kPrint);
      stream_.next();
      stmt->exprs.push_back(exprs_.parse_tuple());
      stream_.expect(TokenKind::kVariableEnd, "the end of the tag");
      return stmt;
    }
    stream_.expect(TokenKind::kBlockBegin, "a tag");
    return parse_tag();
  }

  StmtPtr parse_tag() {
    const int line = stream_.line();
    const std::string tag = stream_.expect_any_name();
    if (tag == "if") return parse_if();
    if (tag == "for") return parse_for();
    if (tag == "set") return parse_set();
    if (tag == "macro") return parse_macro();
    if (tag == "with") return parse_with();
    if (tag == "filter") return parse_filter_block();
    if (tag == "generation") return parse_generation();
    if (tag == "break" || tag == "continue") return parse_jump(tag, line);
    fail(Code::kUnsupported, "chat template line {}: the tag '{}' is not supported here", line, tag);
  }

  StmtPtr parse_if() {
    StmtPtr stmt = make(StmtKind::kIf);
    for (;;) {
      stmt->exprs.push_back(exprs_.parse_tuple(false));
      end_tag();
      stmt->bodies.push_back(parse_body({"elif", "else", "endif"}));
      if (!at_tag({"elif"})) break;
      stream_.next();
      stream_.next();
    }
    if (at_tag({"else"})) {
      take_tag("else");
      stmt->bodies.push_back(parse_body({"endif"}));
    }
    take_tag("endif");
    return stmt;
  }

  std::vector<std::string> parse_targets() {
    std::vector<std::string> names;
    const bool parenthesis = stream_.skip_op("(");
    do {
      if (stream_.is_name("in")) break;
      names.push_back(stream_.expect_any_name());
    } while (stream_.skip_op(","));
    if (parenthesis) stream_.expect_op(")");
    return names;
  }

  StmtPtr parse_for() {
    StmtPtr stmt = make(StmtKind::kFor);
    stmt->names = parse_targets();
    stream_.expect_name("in");
    stmt->exprs.push_back(exprs_.parse_tuple(false));
    stmt->exprs.push_back(stream_.skip_name("if") ? exprs_.parse() : nullptr);
    if (stream_.is_name("recursive")) {
      fail(Code::kUnsupported, "chat template line {}: recursive loops are not supported", stream_.line());
    }
    end_tag();
    ++loops_;
    stmt->bodies.push_back(parse_body({"else", "endfor"}));
    --loops_;
    if (at_tag({"else"})) {
      take_tag("else");
      stmt->bodies.push_back(parse_body({"endfor"}));
    }
    take_tag("endfor");
    return stmt;
  }

  ExprPtr parse_block_filters() {
    ExprPtr text = exprs_.make(ExprKind::kName, std::string(kBlockText));
    return stream_.skip_op("|") ? exprs_.parse_filters(std::move(text)) : std::move(text);
  }

  StmtPtr parse_set() {
    StmtPtr stmt = make(StmtKind::kSet);
    stmt->names = parse_targets();
    if (stmt->names.size() == 1 && stream_.skip_op(".")) stmt->attribute = stream_.expect_any_name();
    if (stream_.skip_op("=")) {
      stmt->exprs.push_back(exprs_.parse_tuple());
      end_tag();
      return stmt;
    }
    if (stmt->names.size() != 1) stream_.fail_expected("=");
    stmt->kind = StmtKind::kSetBlock;
    stmt->exprs.push_back(parse_block_filters());
    end_tag();
    stmt->bodies.push_back(parse_block("endset"));
    return stmt;
  }

  StmtPtr parse_macro() {
    StmtPtr stmt = make(StmtKind::kMacro);
    stmt->name = stream_.expect_any_name();
    stream_.expect_op("(");
    while (!stream_.is_op(")")) {
      stmt->names.push_back(stream_.expect_any_name());
      stmt->exprs.push_back(stream_.skip_op("=") ? exprs_.parse() : nullptr);
      if (!stream_.skip_op(",")) break;
    }
    stream_.expect_op(")");
    end_tag();
    const int loops = std::exchange(loops_, 0);
    stmt->bodies.push_back(parse_block("endmacro"));
    loops_ = loops;
    return stmt;
  }

  StmtPtr parse_with() {
    StmtPtr stmt = make(StmtKind::kScope);
    while (!stream_.is(TokenKind::kBlockEnd)) {
      stmt->names.push_back(stream_.expect_any_name());
      stream_.expect_op("=");
      stmt->exprs.push_back(exprs_.parse());
      if (!stream_.skip_op(",")) break;
    }
    end_tag();
    stmt->bodies.push_back(parse_block("endwith"));
    return stmt;
  }

  // Marks what the model is trained to write; printing is not affected.
  StmtPtr parse_generation() {
    StmtPtr stmt = make(StmtKind::kScope);
    end_tag();
    const int loops = std::exchange(loops_, 0);
    stmt->bodies.push_back(parse_block("endgeneration"));
    loops_ = loops;
    return stmt;
  }

  StmtPtr parse_filter_block() {
    StmtPtr stmt = make(StmtKind::kFilterBlock);
    stmt->exprs.push_back(exprs_.parse_filters(exprs_.make(ExprKind::kName, std::string(kBlockText))));
    end_tag();
    const int loops = std::exchange(loops_, 0);
    stmt->bodies.push_back(parse_block("endfilter"));
    loops_ = loops;
    return stmt;
  }

  StmtPtr parse_jump(const std::string& tag, int line) {
    if (loops_ == 0) fail(Code::kInput, "chat template line {}: '{}' outside a loop", line, tag);
    StmtPtr stmt = make(tag == "break" ? StmtKind::kBreak : StmtKind::kContinue);
    end_tag();
    return stmt;
  }

  TokenStream stream_;
  ExprParser exprs_;
  std::vector<std::string>& literals_;
  int nesting_ = 0;
  int loops_ = 0;
};

}  // namespace

Body parse(std::string_view source, std::vector<std::string>& literals) { return Parser(source, literals).run(); }

}  // namespace stet::jinja
