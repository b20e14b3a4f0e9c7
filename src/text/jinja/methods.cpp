// Methods of strings and dictionaries.
#include <algorithm>
#include <iterator>

#include "text/jinja/runtime.h"
#include "text/jinja/text_ops.h"
#include "text/unicode.h"

namespace stet::jinja {
namespace {

using Method = Value (*)(Runtime&, const Value& self, Arguments&);

struct NamedMethod {
  std::string_view name;
  Method call;
};

template <bool left, bool right>
Value strip_method(Runtime& runtime, const Value& self, Arguments& arguments) {
  const BoundArguments args(runtime, "strip", arguments, {"chars?"});
  const bool has_chars = args.has(0) && !args.at(0).is_none();
  const std::optional<std::string_view> chars =
      has_chars ? std::optional<std::string_view>(args.text(0).bytes()) : std::nullopt;
  if (chars) runtime.charge(self.text()->size() + chars->size());
  return Value::string(strip(*self.text(), chars, left, right));
}

template <bool from_right>
Value split_method(Runtime& runtime, const Value& self, Arguments& arguments) {
  const BoundArguments args(runtime, "split", arguments, {"sep?", "maxsplit?"});
  const bool has_separator = args.has(0) && !args.at(0).is_none();
  if (has_separator && args.text(0).empty()) runtime.error(Code::kInput, "split with an empty separator");
  const auto separator = has_separator ? std::optional<std::string_view>(args.text(0).bytes()) : std::nullopt;
  std::vector<Value> parts = split(*self.text(), separator, args.integer(1, -1), from_right);
  runtime.charge_items(2 * parts.size());
  return Value::list(std::move(parts));
}

Value splitlines(Runtime& runtime, const Value& self, Arguments& arguments) {
  const BoundArguments args(runtime, "splitlines", arguments, {"keepends?"});
  std::vector<Value> lines = split_lines(*self.text(), args.truth(0, false));
  runtime.charge_items(2 * lines.size());
  return Value::list(std::move(lines));
}

// startswith and endswith take one string or a tuple of them.
template <typename Matches>
Value matches_any(Runtime& runtime, std::string_view name, Arguments& arguments, Matches&& matches) {
  const BoundArguments args(runtime, name, arguments, {"prefix"});
  const Sequence* list = args.at(0).sequence();
  if (list == nullptr) return Value::boolean(matches(args.text(0).bytes()));
  return Value::boolean(std::any_of(list->items.begin(), list->items.end(),
                                    [&](const Value& v) { return v.text() != nullptr && matches(v.text()->bytes()); }));
}

Value startswith(Runtime& runtime, const Value& self, Arguments& arguments) {
  return matches_any(runtime, "startswith", arguments,
                     [&](const std::string& s) { return self.text()->bytes().starts_with(s); });
}

Value endswith(Runtime& runtime, const Value& self, Arguments& arguments) {
  return matches_any(runtime, "endswith", arguments,
                     [&](const std::string& s) { return self.text()->bytes().ends_with(s); });
}

Value removeprefix(Runtime& runtime, const Value& self, Arguments& arguments) {
  const BoundArguments args(runtime, "removeprefix", arguments, {"prefix"});
  const bool matches = self.text()->bytes().starts_with(args.text(0).bytes());
  return matches ? Value::string(self.text()->slice(args.text(0).size(), self.text()->size())) : self;
}

Value removesuffix(Runtime& runtime, const Value& self, Arguments& arguments) {
  const BoundArguments args(runtime, "removesuffix", arguments, {"suffix"});
  const bool matches = self.text()->bytes().ends_with(args.text(0).bytes());
  return matches ? Value::string(self.text()->slice(0, self.text()->size() - args.text(0).size())) : self;
}

Value replace_method(Runtime& runtime, const Value& self, Arguments& arguments) {
  const BoundArguments args(runtime, "replace", arguments, {"old", "new", "count?"});
  const Text& text = *self.text();
  runtime.charge(text.size() + count_occurrences(text.bytes(), args.text(0).bytes()) * (args.text(1).size() + 1));
  return Value::string(replace(text, args.text(0), args.text(1), args.integer(2, -1)));
}

template <CaseChange change>
Value case_method(Runtime& runtime, const Value& self, Arguments& arguments) {
  const BoundArguments args(runtime, "a change of case", arguments, {});
  return Value::string(change_case(*self.text(), change));
}

Value find_method_impl(const Value& self, size_t at) {
  if (at == std::string::npos) return Value::integer(-1);
  return Value::integer(static_cast<int64_t>(count_chars(std::string_view(self.text()->bytes()).substr(0, at))));
}

Value find(Runtime& runtime, const Value& self, Arguments& arguments) {
  const BoundArguments args(runtime, "find", arguments, {"sub"});
  return find_method_impl(self, self.text()->bytes().find(args.text(0).bytes()));
}

Value rfind(Runtime& runtime, const Value& self, Arguments& arguments) {
  const BoundArguments args(runtime, "rfind", arguments, {"sub"});
  return find_method_impl(self, self.text()->bytes().rfind(args.text(0).bytes()));
}

Value count(Runtime& runtime, const Value& self, Arguments& arguments) {
  const BoundArguments args(runtime, "count", arguments, {"sub"});
  return Value::integer(static_cast<int64_t>(count_occurrences(self.text()->bytes(), args.text(0).bytes())));
}

Value join_method(Runtime& runtime, const Value& self, Arguments& arguments) {
  const BoundArguments args(runtime, "join", arguments, {"iterable"});
  std::vector<Text> parts;
  for (const Value& v : iterate(runtime, args.at(0))) {
    if (v.text() == nullptr) runtime.error(Code::kInput, "join needs strings, not a value of kind {}", v.kind());
    runtime.charge(v.text()->size() + self.text()->size());
    parts.push_back(*v.text());
  }
  return Value::string(join(parts, *self.text()));
}

// Whether the text is not empty and each of its characters has one of the classes.
template <uint8_t classes>
Value all_chars(Runtime& runtime, const Value& self, Arguments& arguments) {
  const BoundArguments args(runtime, "the test of characters", arguments, {});
  const std::string_view text = self.text()->bytes();
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text.substr(at));
    const bool matches = classes == kWhitespace ? is_python_space(c.value) : (char_classes(c.value) & classes) != 0;
    if (!matches) return Value::boolean(false);
    at += c.bytes;
  }
  return Value::boolean(!text.empty());
}

constexpr NamedMethod kTextMethods[] = {
    {"strip", strip_method<true, true>},
    {"lstrip", strip_method<true, false>},
    {"rstrip", strip_method<false, true>},
    {"split", split_method<false>},
    {"rsplit", split_method<true>},
    {"splitlines", splitlines},
    {"startswith", startswith},
    {"endswith", endswith},
    {"removeprefix", removeprefix},
    {"removesuffix", removesuffix},
    {"replace", replace_method},
    {"upper", case_method<CaseChange::kUpper>},
    {"lower", case_method<CaseChange::kLower>},
    {"title", case_method<CaseChange::kTitle>},
    {"capitalize", case_method<CaseChange::kCapitalize>},
    {"find", find},
    {"rfind", rfind},
    {"count", count},
    {"join", join_method},
    {"isalpha", all_chars<kLetter>},
    {"isdigit", all_chars<kNumber>},
    {"isspace", all_chars<kWhitespace>},
};

// Methods of Python's strings, lists and dictionaries that a template could call but this engine refuses by name.
constexpr std::string_view kRefusedText[] = {
    "format",     "encode",  "center",    "ljust",     "rjust",      "zfill",      "partition",
    "rpartition", "index",   "rindex",    "translate", "format_map", "expandtabs", "swapcase",
    "casefold",   "isalnum", "isnumeric", "isdecimal", "isupper",    "islower",    "istitle"};
constexpr std::string_view kRefusedList[] = {"append", "extend",  "insert", "pop",   "remove", "clear",
                                             "sort",   "reverse", "index",  "count", "copy"};
constexpr std::string_view kRefusedDict[] = {"update", "pop", "popitem", "clear", "setdefault", "copy", "fromkeys"};

Value dict_get(Runtime& runtime, const Value& self, Arguments& arguments) {
  const BoundArguments args(runtime, "get", arguments, {"key", "default?"});
  runtime.charge(self.dict()->items.size());
  const Value* found = self.dict()->find(args.at(0));
  return found != nullptr ? *found : args.get(1, Value::none());
}

Value dict_keys(Runtime& runtime, const Value& self, Arguments& arguments) {
  const BoundArguments args(runtime, "keys", arguments, {});
  return Value::list(iterate(runtime, self));
}

Value dict_values(Runtime& runtime, const Value& self, Arguments& arguments) {
  const BoundArguments args(runtime, "values", arguments, {});
  runtime.charge_items(self.dict()->items.size());
  std::vector<Value> out;
  for (const auto& item : self.dict()->items) out.push_back(item.second);
  return Value::list(std::move(out));
}

Value dict_items(Runtime& runtime, const Value& self, Arguments& arguments) {
  const BoundArguments args(runtime, "items", arguments, {});
  runtime.charge_items(4 * self.dict()->items.size());
  std::vector<Value> out;
  for (const auto& [key, value] : self.dict()->items) out.push_back(Value::list({key, value}, true));
  return Value::list(std::move(out));
}

constexpr NamedMethod kDictMethods[] = {
    {"get", dict_get}, {"keys", dict_keys}, {"values", dict_values}, {"items", dict_items}};

Value refused(const Value& object, std::string_view name) {
  const std::string text = fmt::format("the method '{}' of a {} is not supported", name, object.kind());
  return Value::callable(
      {std::string(name),
       [text](Runtime& runtime, Arguments&) -> Value { runtime.error(Code::kUnsupported, "{}", text); }, 1});
}

template <typename Methods, typename Refused>
Value bind(const Value& object, std::string_view name, const Methods& methods, const Refused& refused_names) {
  for (const NamedMethod& method : methods) {
    if (method.name != name) continue;
    const auto call = [object, run = method.call](Runtime& runtime, Arguments& arguments) {
      runtime.charge(object.text() ? object.text()->size() : 1);
      return run(runtime, object, arguments);
    };
    return Value::callable({std::string(name), call, object.depth() + 1});
  }
  const bool is_refused =
      std::find(std::begin(refused_names), std::end(refused_names), name) != std::end(refused_names);
  return is_refused ? refused(object, name) : Value();
}

}  // namespace

Value find_method(const Value& object, std::string_view name) {
  constexpr NamedMethod kNone[] = {{"", nullptr}};
  if (object.text()) return bind(object, name, kTextMethods, kRefusedText);
  if (object.dict()) return bind(object, name, kDictMethods, kRefusedDict);
  if (object.sequence()) return bind(object, name, kNone, kRefusedList);
  return Value();
}

}  // namespace stet::jinja
