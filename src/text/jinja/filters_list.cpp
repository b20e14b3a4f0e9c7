// Filters on lists and dictionaries.
#include <algorithm>

#include "text/jinja/filters.h"
#include "text/jinja/text_ops.h"

namespace stet::jinja {
namespace {

// The member that a path such as "function.name" or 0 leads to.
Value follow(Runtime& runtime, Value value, const Value& path) {
  if (!path.text()) return get_item(runtime, value, path);
  std::string_view rest = path.text()->bytes();
  for (;;) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool is_index =
        !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    const Value key =
        is_index && part.size() < 10 ? Value::integer(std::stoll(std::string(part))) : Value::string(std::string(part));
    value = get_item(runtime, value, key);
    if (dot == std::string_view::npos) return value;
    rest.remove_prefix(dot + 1);
  }
}

Value join_filter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "join", arguments, {"d?", "attribute?"});
  const Text separator = args.has(0) ? print(args.at(0)) : Text();
  std::vector<Text> parts;
  for (const Value& item : iterate(runtime, value)) {
    const Value part = args.has(1) ? follow(runtime, item, args.at(1)) : item;
    runtime.charge(part.weight() + separator.size() + sizeof(Text));
    parts.push_back(print(part));
  }
  return Value::string(join(parts, separator));
}

Value to_list(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "list", arguments, {});
  return Value::list(iterate(runtime, value));
}

Value items(Runtime& runtime, const Value& value, const Arguments& arguments) {
  if (value.is_undefined()) return Value::list({});
  if (!value.dict()) runtime.error(Code::kInput, "items needs a dictionary, not a value of kind {}", value.kind());
  Arguments copy = arguments;
  return find_method(value, "items").callable()->call(runtime, copy);
}

Value first(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "first", arguments, {});
  const std::vector<Value> list = iterate(runtime, value);
  return list.empty() ? Value::undefined("the first item of nothing") : list.front();
}

Value last(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "last", arguments, {});
  const std::vector<Value> list = iterate(runtime, value);
  return list.empty() ? Value::undefined("the last item of nothing") : list.back();
}

Value reverse(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "reverse", arguments, {});
  std::vector<Value> list = iterate(runtime, value);
  std::reverse(list.begin(), list.end());
  if (!value.text()) return Value::list(std::move(list));
  Text out;
  for (const Value& c : list) out.append(*c.text());
  return Value::string(std::move(out));
}

Value lower_case(const Value& v) { return v.text() ? Value::string(change_case(*v.text(), CaseChange::kLower)) : v; }

// Stable, by key; refuses keys that Python cannot order.
void sort_by_key(Runtime& runtime, std::vector<std::pair<Value, Value>>& keyed, bool descending) {
  uint64_t weight = 0;
  for (const auto& [key, item] : keyed) weight += key.weight();
  runtime.charge(16 * weight + 64 * keyed.size());
  for (size_t i = 1; i < keyed.size(); ++i) {
    if (!compare(keyed[0].first, keyed[i].first)) {
      runtime.error(Code::kInput, "values of kinds {} and {} cannot be sorted", keyed[0].first.kind(),
                    keyed[i].first.kind());
    }
  }
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    const int order = compare(a.first, b.first).value_or(0);
    return descending ? order > 0 : order < 0;
  });
}

Value sort(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "sort", arguments, {"reverse?", "case_sensitive?", "attribute?"});
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : iterate(runtime, value)) {
    const Value key = args.has(2) ? follow(runtime, item, args.at(2)) : item;
    keyed.emplace_back(args.truth(1, false) ? key : lower_case(key), item);
  }
  sort_by_key(runtime, keyed, args.truth(0, false));
  std::vector<Value> out;
  for (auto& [key, item] : keyed) out.push_back(std::move(item));
  return Value::list(std::move(out));
}

Value dictsort(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "dictsort", arguments, {"case_sensitive?", "by?", "reverse?"});
  if (!value.dict()) runtime.error(Code::kInput, "dictsort needs a dictionary, not a value of kind {}", value.kind());
  const std::string by = args.has(1) ? args.text(1).bytes() : "key";
  if (by != "key" && by != "value") runtime.error(Code::kInput, "dictsort by '{}' (key or value)", by);
  runtime.charge_items(4 * value.dict()->items.size());
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [k, v] : value.dict()->items) {
    const Value& key = by == "key" ? k : v;
    keyed.emplace_back(args.truth(0, false) ? key : lower_case(key), Value::list({k, v}, true));
  }
  sort_by_key(runtime, keyed, args.truth(2, false));
  std::vector<Value> out;
  for (auto& [key, item] : keyed) out.push_back(std::move(item));
  return Value::list(std::move(out));
}

Value unique(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "unique", arguments, {});
  std::vector<Value> out, seen;
  for (const Value& item : iterate(runtime, value)) {
    const Value key = lower_case(item);
    runtime.charge(key.weight() * (seen.size() + 1));
    if (std::any_of(seen.begin(), seen.end(), [&](const Value& v) { return equal(v, key); })) continue;
    seen.push_back(key);
    out.push_back(item);
  }
  return Value::list(std::move(out));
}

Value sum(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "sum", arguments, {"attribute?", "start?"});
  Value total = args.get(1, Value::integer(0));
  for (const Value& item : iterate(runtime, value)) {
    total =
        binary(runtime, "+", total, args.has(0) && !args.at(0).is_none() ? follow(runtime, item, args.at(0)) : item);
  }
  return total;
}

template <bool want_max>
Value extreme(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, want_max ? "max" : "min", arguments, {});
  Value best = Value::undefined("the extreme of nothing");
  for (const Value& item : iterate(runtime, value)) {
    if (best.is_undefined() || compare(runtime, want_max ? ">" : "<", lower_case(item), lower_case(best))) best = item;
  }
  return best;
}

// map('filter', arguments...) or map(attribute='name', default=...).
Value map(Runtime& runtime, const Value& value, const Arguments& arguments) {
  std::vector<Value> out;
  if (arguments.positional.empty()) {
    const BoundArguments args(runtime, "map", arguments, {"attribute", "default?"});
    for (const Value& item : iterate(runtime, value)) {
      const Value member = follow(runtime, item, args.at(0));
      out.push_back(member.is_undefined() ? args.get(1, member) : member);
    }
    return Value::list(std::move(out));
  }
  if (!arguments.positional[0].text()) runtime.error(Code::kInput, "map needs the name of a filter");
  const Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.named};
  const std::string& filter = arguments.positional[0].text()->bytes();
  for (const Value& item : iterate(runtime, value)) out.push_back(apply_filter(runtime, filter, item, rest));
  return Value::list(std::move(out));
}

// select(test, arguments...) and selectattr(attribute, test, arguments...), and their opposites.
template <bool with_attribute, bool wanted>
Value select(Runtime& runtime, const Value& value, const Arguments& arguments) {
  constexpr size_t kSkip = with_attribute ? 1 : 0;
  const std::vector<Value>& given = arguments.positional;
  if (given.size() < kSkip) runtime.error(Code::kInput, "selectattr and rejectattr need an attribute");
  const bool has_test = given.size() > kSkip;
  if (has_test && !given[kSkip].text()) runtime.error(Code::kInput, "select and reject need the name of a test");
  Arguments rest{{}, arguments.named};
  if (has_test) rest.positional.assign(given.begin() + kSkip + 1, given.end());
  std::vector<Value> out;
  for (const Value& item : iterate(runtime, value)) {
    const Value subject = with_attribute ? follow(runtime, item, given[0]) : item;
    const bool passes = has_test ? apply_test(runtime, given[kSkip].text()->bytes(), subject, rest) : subject.truthy();
    if (passes == wanted) out.push_back(item);
  }
  return Value::list(std::move(out));
}

constexpr NamedFilter kListFilters[] = {
    {"join", join_filter},
    {"list", to_list},
    {"items", items},
    {"first", first},
    {"last", last},
    {"reverse", reverse},
    {"sort", sort},
    {"dictsort", dictsort},
    {"unique", unique},
    {"sum", sum},
    {"min", extreme<false>},
    {"max", extreme<true>},
    {"map", map},
    {"select", select<false, true>},
    {"reject", select<false, false>},
    {"selectattr", select<true, true>},
    {"rejectattr", select<true, false>},
};

}  // namespace

std::span<const NamedFilter> list_filters() { return kListFilters; }

}  // namespace stet::jinja
