// Filters on single values. Those on lists are in filters_list.cpp.
#include "text/jinja/filters.h"

#include <cmath>
#include <cstdlib>
#include <string>

#include "text/jinja/text_ops.h"

namespace stet::jinja {
namespace {

// Calls a method of the string that the value prints as.
Value call_method(Runtime& runtime, const Value& value, std::string_view method, const Arguments& arguments) {
  runtime.charge(value.weight());
  Arguments copy = arguments;
  return find_method(Value::string(print(value)), method).callable()->call(runtime, copy);
}

template <const char* method>
Value string_method(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return call_method(runtime, value, method, arguments);
}

constexpr char kStrip[] = "strip", kUpper[] = "upper", kLower[] = "lower", kTitle[] = "title",
               kCapitalize[] = "capitalize", kReplace[] = "replace";

Value to_string(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "string", arguments, {});
  runtime.charge(value.weight());
  return value.text() ? value : Value::string(print(value));
}

Value length(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "length", arguments, {});
  size_t n = 0;
  if (const Text* text = value.text()) {
    runtime.charge(text->size());
    n = count_chars(text->bytes());
  } else if (const Sequence* list = value.sequence()) {
    n = list->items.size();
  } else if (const Dict* dict = value.dict()) {
    n = dict->items.size();
  } else if (!value.is_undefined()) {
    runtime.error(Code::kInput, "a value of kind {} has no length", value.kind());
  }
  return Value::integer(static_cast<int64_t>(n));
}

Value default_value(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "default", arguments, {"default_value?", "boolean?"});
  const bool missing = value.is_undefined() || (args.truth(1, false) && !value.truthy());
  return missing ? args.get(0, Value::string("")) : value;
}

Value to_json(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "tojson", arguments, {"ensure_ascii?", "indent?", "separators?", "sort_keys?"});
  runtime.charge(2 * value.weight());
  JsonStyle style;
  style.ensure_ascii = args.truth(0, false);
  style.sort_keys = args.truth(3, false);
  if (args.has(1) && !args.at(1).is_none()) {
    const int64_t indent = args.integer(1);
    if (indent < 0 || indent > 16)
      runtime.error(Code::kUnsupported, "tojson with an indent of {} (0 to 16 are supported)", indent);
    style.indent = static_cast<int>(indent);
    style.item_separator.assign(1, ',');
    runtime.charge(value.weight() * static_cast<uint64_t>(indent + 1) * static_cast<uint64_t>(value.depth() + 1));
  }
  if (args.has(2) && !args.at(2).is_none()) {
    const std::vector<Value> pair = iterate(runtime, args.at(2));
    if (pair.size() != 2 || !pair[0].text() || !pair[1].text())
      runtime.error(Code::kInput, "separators must be two strings");
    style.item_separator = pair[0].text()->bytes();
    style.key_separator = pair[1].text()->bytes();
    runtime.charge(value.weight() * (style.item_separator.size() + style.key_separator.size()));
  }
  Text out;
  print_json(value, style, out);
  return Value::string(std::move(out));
}

// Python's int(): nothing when the text is no number.
std::optional<double> parse_number(const std::string& text) {
  const Text stripped = strip(Text(text, kTemplateSource), std::nullopt, true, true);
  if (stripped.empty()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(stripped.bytes().c_str(), &end);
  return *end == '\0' ? std::optional(value) : std::nullopt;
}

Value to_int(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "int", arguments, {"default?"});
  const Value missing = args.get(0, Value::integer(0));
  if (const std::optional<int64_t> i = value.as_integer()) return Value::integer(*i);
  std::optional<double> number = value.as_number();
  if (value.text()) {
    const std::string text = strip(*value.text(), std::nullopt, true, true).bytes();
    char* end = nullptr;
    errno = 0;
    const long long exact = std::strtoll(text.c_str(), &end, 10);
    if (!text.empty() && *end == '\0' && errno == 0) return Value::integer(exact);
    number = parse_number(text);
  }
  if (!number || !(std::fabs(*number) < 9e18)) return missing;
  return Value::integer(static_cast<int64_t>(*number));
}

Value to_float(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "float", arguments, {"default?"});
  std::optional<double> number = value.as_number();
  if (value.text()) number = parse_number(value.text()->bytes());
  return number ? Value::number(*number) : args.get(0, Value::number(0));
}

Value absolute(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "abs", arguments, {});
  const std::optional<double> number = value.as_number();
  if (!number) runtime.error(Code::kInput, "a value of kind {} has no absolute value", value.kind());
  if (value.is_float()) return Value::number(std::fabs(*number));
  return *number < 0 ? unary(runtime, "-", value) : Value::integer(*value.as_integer());
}

Value indent(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "indent", arguments, {"width?", "first?", "blank?"});
  const int64_t width = args.integer(0, 4);
  if (width < 0 || width > 1024)
    runtime.error(Code::kUnsupported, "indent with a width of {} (0 to 1024 are supported)", width);
  const std::string spaces(static_cast<size_t>(width), ' ');
  if (!value.text()) runtime.error(Code::kInput, "indent needs a string, not a value of kind {}", value.kind());
  const Text& text = *value.text();
  const std::vector<Value> lines = split_lines(text, true);
  runtime.charge(text.size() + lines.size() * (spaces.size() + 1));
  Text out;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Text& line = *lines[i].text();
    const bool is_blank = line.bytes() == "\n" || line.bytes() == "\r\n";
    const bool wanted = i == 0 ? args.truth(1, false) : (!is_blank || args.truth(2, false));
    if (wanted) out.append(spaces, kTemplateSource);
    out.append(line);
  }
  return Value::string(std::move(out));
}

Value escape(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "escape", arguments, {});
  runtime.charge(6 * value.weight());
  Text out = print(value);
  for (const auto& [from, to] :
       {std::pair("&", "&amp;"), {"<", "&lt;"}, {">", "&gt;"}, {"'", "&#39;"}, {"\"", "&#34;"}}) {
    out = replace(out, Text(from, kTemplateSource), Text(to, kTemplateSource), -1);
  }
  return Value::string(std::move(out));
}

Value attribute(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "attr", arguments, {"name"});
  const std::string& name = args.text(0).bytes();  // of attributes only: keys of a dictionary are items
  return value.dict() ? find_method(value, name) : get_attribute(runtime, value, name);
}

constexpr NamedFilter kValueFilters[] = {
    {"trim", string_method<kStrip>},
    {"upper", string_method<kUpper>},
    {"lower", string_method<kLower>},
    {"title", string_method<kTitle>},
    {"capitalize", string_method<kCapitalize>},
    {"replace", string_method<kReplace>},
    {"string", to_string},
    {"safe", to_string},
    {"length", length},
    {"count", length},
    {"default", default_value},
    {"d", default_value},
    {"tojson", to_json},
    {"int", to_int},
    {"float", to_float},
    {"abs", absolute},
    {"indent", indent},
    {"escape", escape},
    {"e", escape},
    {"attr", attribute},
};

}  // namespace

std::span<const NamedFilter> value_filters() { return kValueFilters; }

Value apply_filter(Runtime& runtime, std::string_view name, const Value& value, const Arguments& arguments) {
  for (const std::span<const NamedFilter> filters : {value_filters(), list_filters()}) {
    for (const NamedFilter& filter : filters) {
      if (filter.name == name) return filter.apply(runtime, value, arguments);
    }
  }
  runtime.error(Code::kUnsupported, "the filter '{}' is not supported", name);
}

}  // namespace stet::jinja
