#include "text/jinja/lexer.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/error.h"
#include "text/unicode.h"

namespace stet::jinja {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0; }

// Line ends become \n, and one at the very end is dropped.
std::string normalize(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out.push_back(source[i]);
    } else {
      out.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalize(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) root();
    emit(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void error(std::string_view what) { fail(Code::kInput, "chat template line {}: {}", line_, what); }

  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool starts(std::string_view text) const { return rest().starts_with(text); }
  void emit(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void consume(size_t bytes) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(at_),
                                         source_.begin() + static_cast<ptrdiff_t>(at_ + bytes), '\n'));
    if (bytes > 0) line_starting_ = source_[at_ + bytes - 1] == '\n';
    at_ += bytes;
  }
  void skip_spaces() {
    size_t n = 0;
    while (at_ + n < source_.size() && is_space(source_[at_ + n])) ++n;
    consume(n);
  }

  size_t find_tag() const {
    for (size_t i = at_; i + 1 < source_.size(); ++i) {
      if (source_[i] == '{' && (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#')) return i;
    }
    return source_.size();
  }

  // Data up to `tag`, then the opening of that tag: its sign decides what becomes of the white space before it.
  void data_before(size_t tag, bool is_variable) {
    std::string text = source_.substr(at_, tag - at_);
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
    if (sign == '-') {
      while (!text.empty() && is_space(text.back())) text.pop_back();
    } else if (sign != '+' && !is_variable) {
      const size_t line_begin = text.rfind('\n') + 1;  // npos + 1 == 0
      const bool at_line_begin = line_begin > 0 || line_starting_;
      if (at_line_begin && std::all_of(text.begin() + static_cast<ptrdiff_t>(line_begin), text.end(), is_space)) {
        text.resize(line_begin);
      }
    }
    if (!text.empty()) emit(TokenKind::kData, std::move(text));
    consume(tag - at_ + 2);
    if (sign == '-' || sign == '+') consume(1);
  }

  void root() {
    const size_t tag = find_tag();
    if (tag == source_.size()) {
      emit(TokenKind::kData, source_.substr(at_));
      consume(source_.size() - at_);
      return;
    }
    const char kind = source_[tag + 1];
    data_before(tag, kind == '{');
    if (kind == '#') return comment();
    if (kind == '%' && try_raw()) return;
    const bool is_block = kind == '%';
    emit(is_block ? TokenKind::kBlockBegin : TokenKind::kVariableBegin, "");
    inside(is_block);
  }

  // What follows the end of a block or comment: '-' eats all white space, otherwise one line end goes.
  void after_block(char sign) {
    if (sign == '-') {
      skip_spaces();
    } else if (sign != '+' && starts("\n")) {
      consume(1);
    }
  }

  void comment() {
    const size_t end = source_.find("#}", at_);
    if (end == std::string::npos) error("a comment is not closed");
    const char sign = end > at_ ? source_[end - 1] : ' ';
    consume(end + 2 - at_);
    after_block(sign);
  }

  // Length of "NAME SIGN? %}" after optional white space, and its sign; nothing if something else comes.
  std::optional<std::pair<size_t, char>> block_of(std::string_view text, std::string_view name) const {
    size_t n = 0;
    const auto spaces = [&] {
      while (n < text.size() && is_space(text[n])) ++n;
    };
    spaces();
    if (!text.substr(n).starts_with(name)) return std::nullopt;
    n += name.size();
    spaces();
    char sign = ' ';
    if (n < text.size() && (text[n] == '-' || text[n] == '+')) sign = text[n++];
    if (!text.substr(n).starts_with("%}")) return std::nullopt;
    return std::pair(n + 2, sign);
  }

  // After "{%": a raw block, taken as data up to its end.
  bool try_raw() {
    const auto begin = block_of(rest(), "raw");
    if (!begin || begin->second == '+') return false;
    consume(begin->first);
    if (begin->second == '-') skip_spaces();
    for (size_t tag = source_.find("{%", at_); tag != std::string::npos; tag = source_.find("{%", tag + 1)) {
      const size_t sign = tag + 2 < source_.size() && (source_[tag + 2] == '-' || source_[tag + 2] == '+') ? 1 : 0;
      const auto end = block_of(std::string_view(source_).substr(tag + 2 + sign), "endraw");
      if (!end) continue;
      data_before(tag, false);
      consume(end->first);
      after_block(end->second);
      return true;
    }
    error("a raw block is not closed");
  }

  void inside(bool is_block) {
    const std::string_view close = is_block ? "%}" : "}}";
    std::string brackets;
    for (;;) {
      skip_spaces();
      if (at_ == source_.size()) error("a tag is not closed");
      if (brackets.empty() && end_of_tag(is_block, close)) return;
      const char c = source_[at_];
      if (is_digit(c)) {
        number();
      } else if (is_name_start(c)) {
        name();
      } else if (c == '"' || c == '\'') {
        string(c);
      } else {
        op(brackets);
      }
    }
  }

  bool end_of_tag(bool is_block, std::string_view close) {
    const char sign = starts("-") || (is_block && starts("+")) ? source_[at_] : ' ';
    const size_t skip = sign == ' ' ? 0 : 1;
    if (!rest().substr(skip).starts_with(close)) return false;
    emit(is_block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd, "");
    consume(skip + 2);
    if (is_block) {
      after_block(sign);
    } else if (sign == '-') {
      skip_spaces();
    }
    return true;
  }

  void name() {
    size_t n = 0;
    while (at_ + n < source_.size() && (is_name_start(source_[at_ + n]) || is_digit(source_[at_ + n]))) ++n;
    emit(TokenKind::kName, source_.substr(at_, n));
    consume(n);
  }

  void number() {
    size_t n = 0;
    std::string digits;
    bool is_float = false;
    const auto peek = [&](size_t i) { return at_ + i < source_.size() ? source_[at_ + i] : '\0'; };
    const auto run = [&] {
      while (is_digit(peek(n)) || (peek(n) == '_' && is_digit(peek(n + 1)))) {
        if (peek(n) != '_') digits.push_back(peek(n));
        ++n;
      }
    };
    run();
    if (peek(n) == '.' && is_digit(peek(n + 1))) {
      is_float = true;
      digits.push_back('.');
      ++n;
      run();
    }
    const size_t sign = peek(n + 1) == '+' || peek(n + 1) == '-' ? 1 : 0;
    if ((peek(n) == 'e' || peek(n) == 'E') && is_digit(peek(n + 1 + sign))) {
      is_float = true;
      digits.push_back('e');
      if (sign) digits.push_back(peek(n + 1));
      n += 1 + sign;
      run();
    }
    if (is_name_start(peek(n))) error("a number runs into a name; only decimal numbers are supported");
    emit(is_float ? TokenKind::kFloat : TokenKind::kInteger, std::move(digits));
    consume(n);
  }

  void string(char quote) {
    std::string value;
    size_t i = at_ + 1;
    while (i < source_.size() && source_[i] != quote) {
      if (source_[i] != '\\') {
        value.push_back(source_[i++]);
      } else {
        i = escape(i, value);
      }
    }
    if (i >= source_.size()) error("a string is not closed");
    emit(TokenKind::kString, std::move(value));
    consume(i + 1 - at_);
  }

  // Appends what the escape at `i` means and returns the place behind it. Escapes are Python's.
  size_t escape(size_t i, std::string& value) {
    if (i + 1 >= source_.size()) error("a string is not closed");
    const char c = source_[i + 1];
    constexpr std::string_view kFrom = "\\'\"abfnrtv", kTo = "\\'\"\a\b\f\n\r\t\v";
    if (const size_t k = kFrom.find(c); k != std::string_view::npos) {
      value.push_back(kTo[k]);
      return i + 2;
    }
    if (c == '\n') return i + 2;
    if (c == 'x' || c == 'u' || c == 'U') return numeric_escape(i + 2, c == 'x' ? 2 : (c == 'u' ? 4 : 8), value);
    if (c == 'N' || is_digit(c)) error("octal and named escapes in strings are not supported");
    value.push_back('\\');
    return i + 1;
  }

  size_t numeric_escape(size_t i, size_t digits, std::string& value) {
    uint32_t code = 0;
    for (size_t k = 0; k < digits; ++k, ++i) {
      if (i >= source_.size() || std::isxdigit(static_cast<unsigned char>(source_[i])) == 0)
        error("a \\x, \\u or \\U escape is too short");
      const char c = source_[i];
      code = code << 4 | static_cast<uint32_t>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) error("an escape is not a Unicode character");
    append_utf8(value, code);
    return i;
  }

  void op(std::string& brackets) {
    constexpr std::string_view kOperators[] = {"**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                               "]",  "(",  ")",  ">",  "<",  "=",  ".", ":", "|", ",", ";", "{", "}"};
    for (std::string_view candidate : kOperators) {
      if (!starts(candidate)) continue;
      if (candidate == "(" || candidate == "[" || candidate == "{") {
        brackets.push_back(candidate == "(" ? ')' : (candidate == "[" ? ']' : '}'));
      } else if (candidate == ")" || candidate == "]" || candidate == "}") {
        if (brackets.empty() || brackets.back() != candidate[0]) error("brackets do not match");
        brackets.pop_back();
      }
      emit(TokenKind::kOperator, std::string(candidate));
      return consume(candidate.size());
    }
    error("unexpected character in a tag");
  }

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace stet::jinja
