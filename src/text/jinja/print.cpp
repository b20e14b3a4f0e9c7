// How values print: str, repr and JSON, byte for byte as Python does it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja/value.h"
#include "text/unicode.h"

namespace stet::jinja {
namespace {

// Calls each(code point, begin, end) for every character of `text`.
template <typename Each>
void for_each_char(const Text& text, Each&& each) {
  const std::string_view bytes = text.bytes();
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint c = decode_utf8(bytes.substr(at));
    each(c, at, at + c.bytes);
    at += c.bytes;
  }
}

// What Python's str.isprintable says, up to the age of its tables.
bool is_printable(uint32_t c) {
  const uint8_t classes = char_classes(c);
  return c == ' ' || (classes != 0 && (classes & kWhitespace) == 0);
}

std::string escape_code_point(uint32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  if (c < 0x100) return fmt::format("\\x{:02x}", c);
  return c < 0x10000 ? fmt::format("\\u{:04x}", c) : fmt::format("\\U{:08x}", c);
}

void repr_string(const Text& text, Text& out) {
  const bool has_single = text.bytes().find('\'') != std::string::npos;
  const char quote = has_single && text.bytes().find('"') == std::string::npos ? '"' : '\'';
  out.append(std::string_view(&quote, 1), kTemplateSource);
  for_each_char(text, [&](const CodePoint& c, size_t begin, size_t end) {
    if (c.value == '\\' || c.value == static_cast<uint32_t>(quote)) {
      out.append("\\", text.source_at(begin));
    } else if (!is_printable(c.value)) {
      out.append(escape_code_point(c.value), text.source_at(begin));
      return;
    }
    out.append(text, begin, end);
  });
  out.append(std::string_view(&quote, 1), kTemplateSource);
}

std::string json_escape(uint32_t c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\f':
      return "\\f";
    case '\b':
      return "\\b";
    default:
      break;
  }
  if (c < 0x10000) return fmt::format("\\u{:04x}", c);
  const uint32_t rest = c - 0x10000;
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
}

class JsonPrinter {
 public:
  JsonPrinter(const JsonStyle& style, Text& out) : style_(style), out_(out) {}

  void value(const Value& v, int level) {
    if (const Text* text = v.text()) return string(*text);
    if (const Sequence* list = v.sequence()) return array(list->items, level);
    if (const Dict* dict = v.dict()) return object(*dict, level);
    if (v.is_none()) return put("null");
    if (v.is_boolean()) return put(v.truthy() ? "true" : "false");
    if (v.is_integer()) return put(fmt::format("{}", *v.as_integer()));
    if (v.is_float()) return put(json_float(*v.as_number()));
    throw ValueError(Code::kInput, fmt::format("a value of kind {} cannot be written as JSON", v.kind()));
  }

 private:
  void put(std::string_view bytes) { out_.append(bytes, kTemplateSource); }

  static std::string json_float(double v) {
    if (std::isnan(v)) return "NaN";
    if (std::isinf(v)) return v > 0 ? "Infinity" : "-Infinity";
    return print_float(v);
  }

  void string(const Text& text) {
    put("\"");
    for_each_char(text, [&](const CodePoint& c, size_t begin, size_t end) {
      const bool escape =
          c.value < 0x20 || c.value == '"' || c.value == '\\' || (style_.ensure_ascii && c.value > 0x7E);
      if (escape) {
        out_.append(json_escape(c.value), text.source_at(begin));
      } else {
        out_.append(text, begin, end);
      }
    });
    put("\"");
  }

  void new_line(int level) {
    if (style_.indent) put("\n" + std::string(static_cast<size_t>(*style_.indent * level), ' '));
  }

  void array(const std::vector<Value>& items, int level) {
    put("[");
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) put(style_.item_separator);
      new_line(level + 1);
      value(items[i], level + 1);
    }
    if (!items.empty()) new_line(level);
    put("]");
  }

  void key(const Value& k) {
    if (const Text* text = k.text()) return string(*text);
    put("\"");
    value(k, 0);
    put("\"");
  }

  void object(const Dict& dict, int level) {
    std::vector<const std::pair<Value, Value>*> items;
    for (const auto& item : dict.items) items.push_back(&item);
    if (style_.sort_keys) {
      std::stable_sort(items.begin(), items.end(),
                       [](const auto* a, const auto* b) { return compare(a->first, b->first).value_or(0) < 0; });
    }
    put("{");
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) put(style_.item_separator);
      new_line(level + 1);
      key(items[i]->first);
      put(style_.key_separator);
      value(items[i]->second, level + 1);
    }
    if (!items.empty()) new_line(level);
    put("}");
  }

  const JsonStyle& style_;
  Text& out_;
};

void repr_items(const Sequence& list, Text& out) {
  out.append(list.is_tuple ? "(" : "[", kTemplateSource);
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out.append(", ", kTemplateSource);
    print_repr(list.items[i], out);
  }
  if (list.is_tuple && list.items.size() == 1) out.append(",", kTemplateSource);
  out.append(list.is_tuple ? ")" : "]", kTemplateSource);
}

void repr_dict(const Dict& dict, Text& out) {
  out.append("{", kTemplateSource);
  for (size_t i = 0; i < dict.items.size(); ++i) {
    if (i > 0) out.append(", ", kTemplateSource);
    print_repr(dict.items[i].first, out);
    out.append(": ", kTemplateSource);
    print_repr(dict.items[i].second, out);
  }
  out.append("}", kTemplateSource);
}

}  // namespace

std::string print_float(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", v);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

void print_repr(const Value& value, Text& out) {
  if (const Text* text = value.text()) return repr_string(*text, out);
  if (value.is_undefined()) return out.append("Undefined", kTemplateSource);
  print(value, out);
}

void print(const Value& value, Text& out) {
  if (const Text* text = value.text()) return out.append(*text);
  if (const Sequence* list = value.sequence()) return repr_items(*list, out);
  if (const Dict* dict = value.dict()) return repr_dict(*dict, out);
  if (value.is_undefined()) return;
  if (value.is_none()) return out.append("None", kTemplateSource);
  if (value.is_boolean()) return out.append(value.truthy() ? "True" : "False", kTemplateSource);
  if (value.is_integer()) return out.append(fmt::format("{}", *value.as_integer()), kTemplateSource);
  if (value.is_float()) return out.append(print_float(*value.as_number()), kTemplateSource);
  throw ValueError(Code::kUnsupported, fmt::format("printing a value of kind {} is not supported", value.kind()));
}

Text print(const Value& value) {
  Text out;
  print(value, out);
  return out;
}

void print_json(const Value& value, const JsonStyle& style, Text& out) { JsonPrinter(style, out).value(value, 0); }

}  // namespace stet::jinja
