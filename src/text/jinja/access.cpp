// Attributes, items and slices.
#include <algorithm>

#include "text/jinja/runtime.h"
#include "text/jinja/text_ops.h"

namespace stet::jinja {
namespace {

// A field or key by name: undefined when there is none.
const Value* find_field(Runtime& runtime, const Value& object, std::string_view name) {
  if (const Namespace* ns = object.object()) return ns->find(name);
  if (const Dict* dict = object.dict()) {
    runtime.charge(dict->items.size());
    return dict->find(name);
  }
  return nullptr;
}

void refuse_undefined(Runtime& runtime, const Value& object, std::string_view member) {
  if (const std::string* name = object.undefined_name()) {
    runtime.error(Code::kInput, "'{}' is undefined, so it has no member '{}'", *name, member);
  }
}

// Python's index: negative ones count from the end. Nothing when out of range.
std::optional<size_t> to_index(int64_t index, size_t size) {
  if (index < 0) index += static_cast<int64_t>(size);
  if (index < 0 || static_cast<uint64_t>(index) >= size) return std::nullopt;
  return static_cast<size_t>(index);
}

struct Bounds {
  int64_t begin, end, step;
};

// Python's slice.indices().
Bounds slice_bounds(Runtime& runtime, const Value& begin, const Value& end, const Value& step, size_t size) {
  const auto read = [&](const Value& v, int64_t missing) {
    if (v.is_none() || v.is_undefined()) return missing;
    const std::optional<int64_t> i = v.as_integer();
    if (!i) runtime.error(Code::kInput, "a slice needs integers, not a value of kind {}", v.kind());
    return *i;
  };
  const auto n = static_cast<int64_t>(size);
  Bounds b{0, 0, read(step, 1)};
  if (b.step == 0 || b.step == INT64_MIN) runtime.error(Code::kInput, "a slice step of {} is not possible", b.step);
  const bool back = b.step < 0;
  const int64_t low = back ? -1 : 0, high = back ? n - 1 : n;
  const auto clamp = [&](int64_t v) { return v < 0 ? std::max(v + n, low) : std::min(v, high); };
  b.begin = begin.is_none() || begin.is_undefined() ? (back ? high : low) : clamp(read(begin, 0));
  b.end = end.is_none() || end.is_undefined() ? (back ? low : high) : clamp(read(end, 0));
  return b;
}

template <typename Each>
void for_each_index(const Bounds& b, Each&& each) {
  if (b.step > 0) {
    for (int64_t i = b.begin; i < b.end; i += std::min(b.step, b.end - i)) each(static_cast<size_t>(i));
  } else {
    for (int64_t i = b.begin; i > b.end; i += std::max(b.step, b.end - i)) each(static_cast<size_t>(i));
  }
}

}  // namespace

Value get_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  refuse_undefined(runtime, object, name);
  Value method = find_method(object, name);
  if (!method.is_undefined()) return method;
  const Value* field = find_field(runtime, object, name);
  return field == nullptr ? Value::undefined(std::string(name)) : *field;
}

Value get_item(Runtime& runtime, const Value& object, const Value& key) {
  const Text* name = key.text();
  refuse_undefined(runtime, object, name ? std::string_view(name->bytes()) : "[...]");
  if (const std::optional<int64_t> index = key.as_integer()) {
    if (const Sequence* list = object.sequence()) {
      const std::optional<size_t> i = to_index(*index, list->items.size());
      return i ? list->items[*i] : Value::undefined("an item beyond the end of a list");
    }
    if (const Text* text = object.text()) {
      runtime.charge(text->size());
      const std::vector<size_t> offsets = char_offsets(text->bytes());
      const std::optional<size_t> i = to_index(*index, offsets.size() - 1);
      if (!i) return Value::undefined("a character beyond the end of a string");
      return Value::string(text->slice(offsets[*i], offsets[*i + 1]));
    }
  }
  if (const Dict* dict = object.dict()) {
    runtime.charge(dict->items.size());
    if (const Value* found = dict->find(key)) return *found;
  }
  if (name == nullptr) return Value::undefined("an item");
  if (const Value* field = find_field(runtime, object, name->bytes())) return *field;
  Value method = find_method(object, name->bytes());
  return method.is_undefined() ? Value::undefined(name->bytes()) : method;
}

Value get_slice(Runtime& runtime, const Value& object, const Value& begin, const Value& end, const Value& step) {
  refuse_undefined(runtime, object, "[:]");
  if (const Sequence* list = object.sequence()) {
    runtime.charge_items(list->items.size());
    std::vector<Value> items;
    for_each_index(slice_bounds(runtime, begin, end, step, list->items.size()),
                   [&](size_t i) { items.push_back(list->items[i]); });
    return Value::list(std::move(items), list->is_tuple);
  }
  if (const Text* text = object.text()) {
    runtime.charge(text->size());
    const std::vector<size_t> offsets = char_offsets(text->bytes());
    const Bounds b = slice_bounds(runtime, begin, end, step, offsets.size() - 1);
    if (b.step == 1) {
      const auto first = static_cast<size_t>(b.begin), last = static_cast<size_t>(std::max(b.begin, b.end));
      return Value::string(text->slice(offsets[first], offsets[last]));
    }
    Text out;
    for_each_index(b, [&](size_t i) { out.append(*text, offsets[i], offsets[i + 1]); });
    return Value::string(std::move(out));
  }
  runtime.error(Code::kInput, "a value of kind {} cannot be sliced", object.kind());
}

}  // namespace stet::jinja
