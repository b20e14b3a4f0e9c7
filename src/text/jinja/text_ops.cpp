#include "text/jinja/text_ops.h"

#include <algorithm>
#include <string>

#include "text/unicode.h"

namespace stet::jinja {
namespace {

constexpr uint32_t kSharpS = 0xDF;

bool strips(std::string_view character, uint32_t code_point, const std::optional<std::string_view>& chars) {
  if (!chars) return is_python_space(code_point);
  for (size_t at = 0; at < chars->size();) {
    const size_t bytes = decode_utf8(chars->substr(at)).bytes;
    if (chars->substr(at, bytes) == character) return true;
    at += bytes;
  }
  return false;
}

// Start of the character that ends at `end`.
size_t previous_char(std::string_view text, size_t end) {
  for (size_t back = 4; back > 1; --back) {
    if (back > end) continue;
    const CodePoint c = decode_utf8(text.substr(end - back, back));
    if (c.valid && c.bytes == back) return end - back;
  }
  return end - 1;
}

using Ranges = std::vector<std::pair<size_t, size_t>>;

std::vector<Value> to_values(const Text& text, const Ranges& ranges) {
  std::vector<Value> out;
  out.reserve(ranges.size());
  for (const auto& [begin, end] : ranges) out.push_back(Value::string(text.slice(begin, end)));
  return out;
}

Ranges space_words(std::string_view text) {
  Ranges words;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text.substr(at));
    const bool space = is_python_space(c.value);
    if (!space && !in_word) words.emplace_back(at, at);
    in_word = !space;
    at += c.bytes;
    if (in_word) words.back().second = at;
  }
  return words;
}

// The first (or last) `most` words stay; the rest is one word that keeps its white space on the far side.
void limit_words(Ranges& words, size_t most, bool from_right, size_t text_size) {
  if (words.size() <= most) return;
  if (from_right) {
    words.erase(words.begin(), words.end() - static_cast<ptrdiff_t>(most + 1));
    words.front().first = 0;
  } else {
    words.resize(most + 1);
    words.back().second = text_size;
  }
}

Ranges separated(std::string_view text, std::string_view separator, int64_t most, bool from_right) {
  std::vector<size_t> places;
  if (from_right) {
    size_t end = text.size();
    while (most < 0 || static_cast<int64_t>(places.size()) < most) {
      if (end < separator.size()) break;
      const size_t at = text.substr(0, end).rfind(separator);
      if (at == std::string_view::npos) break;
      places.push_back(at);
      end = at;
    }
    std::reverse(places.begin(), places.end());
  } else {
    for (size_t at = text.find(separator); at != std::string_view::npos;
         at = text.find(separator, at + separator.size())) {
      if (most >= 0 && static_cast<int64_t>(places.size()) >= most) break;
      places.push_back(at);
    }
  }
  Ranges out;
  size_t begin = 0;
  for (size_t at : places) {
    out.emplace_back(begin, at);
    begin = at + separator.size();
  }
  out.emplace_back(begin, text.size());
  return out;
}

}  // namespace

std::vector<size_t> char_offsets(std::string_view text) {
  std::vector<size_t> out;
  for (size_t at = 0; at < text.size();) {
    out.push_back(at);
    at += decode_utf8(text.substr(at)).bytes;
  }
  out.push_back(text.size());
  return out;
}

size_t count_chars(std::string_view text) {
  size_t n = 0;
  for (size_t at = 0; at < text.size(); ++n) at += decode_utf8(text.substr(at)).bytes;
  return n;
}

bool is_python_space(uint32_t c) { return (c >= 0x1C && c <= 0x1F) || (char_classes(c) & kWhitespace) != 0; }

Text strip(const Text& text, const std::optional<std::string_view>& chars, bool left, bool right) {
  const std::string_view bytes = text.bytes();
  size_t begin = 0, end = bytes.size();
  while (left && begin < end) {
    const CodePoint c = decode_utf8(bytes.substr(begin));
    if (!strips(bytes.substr(begin, c.bytes), c.value, chars)) break;
    begin += c.bytes;
  }
  while (right && begin < end) {
    const size_t last = previous_char(bytes, end);
    if (!strips(bytes.substr(last, end - last), decode_utf8(bytes.substr(last, end - last)).value, chars)) break;
    end = last;
  }
  return text.slice(begin, std::max(begin, end));
}

std::vector<Value> split(const Text& text, const std::optional<std::string_view>& separator, int64_t most,
                         bool from_right) {
  if (separator) return to_values(text, separated(text.bytes(), *separator, most, from_right));
  Ranges words = space_words(text.bytes());
  if (most >= 0) limit_words(words, static_cast<size_t>(most), from_right, text.size());
  return to_values(text, words);
}

std::vector<Value> split_lines(const Text& text, bool keep_ends) {
  const std::string_view bytes = text.bytes();
  const auto is_break = [](uint32_t c) {
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
  };
  Ranges lines;
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint c = decode_utf8(bytes.substr(at));
    const size_t end = at;
    at += c.bytes;
    if (!is_break(c.value)) continue;
    if (c.value == '\r' && at < bytes.size() && bytes[at] == '\n') ++at;
    lines.emplace_back(begin, keep_ends ? at : end);
    begin = at;
  }
  if (begin < bytes.size()) lines.emplace_back(begin, bytes.size());
  return to_values(text, lines);
}

size_t count_occurrences(std::string_view text, std::string_view part) {
  if (part.empty()) return count_chars(text) + 1;
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

Text replace(const Text& text, const Text& from, const Text& to, int64_t most) {
  const std::string_view bytes = text.bytes();
  Text out;
  size_t done = 0;
  int64_t count = 0;
  if (from.empty()) {
    for (size_t end : char_offsets(bytes)) {
      out.append(text, done, end);
      done = end;
      if (most < 0 || count++ < most) out.append(to);
    }
    return out;
  }
  for (size_t at = bytes.find(from.bytes()); at != std::string_view::npos; at = bytes.find(from.bytes(), done)) {
    if (most >= 0 && count++ >= most) break;
    out.append(text, done, at);
    out.append(to);
    done = at + from.size();
  }
  out.append(text, done, text.size());
  return out;
}

Text change_case(const Text& text, CaseChange change) {
  const std::string_view bytes = text.bytes();
  Text out;
  bool first = true;  // of the text, or of a word for kTitle
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint c = decode_utf8(bytes.substr(at));
    const bool upper = change == CaseChange::kUpper || (first && change != CaseChange::kLower);
    const uint32_t changed = upper ? to_upper(c.value) : to_lower(c.value);
    if (upper && c.value == kSharpS) {
      out.append(change == CaseChange::kUpper ? "SS" : "Ss", text.source_at(at));
    } else if (!c.valid || changed == c.value) {
      out.append(text, at, at + c.bytes);
    } else {
      std::string character;
      append_utf8(character, changed);
      out.append(character, text.source_at(at));
    }
    first = change == CaseChange::kTitle && (char_classes(c.value) & kLetter) == 0;
    at += c.bytes;
  }
  return out;
}

Text join(const std::vector<Text>& parts, const Text& separator) {
  Text out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out.append(separator);
    out.append(parts[i]);
  }
  return out;
}

}  // namespace stet::jinja
