#include "text/jinja/runtime.h"

#include <algorithm>

#include "text/jinja/text_ops.h"

namespace stet::jinja {

BoundArguments::BoundArguments(const Runtime& runtime, std::string_view what, const Arguments& arguments,
                               std::initializer_list<std::string_view> parameters)
    : runtime_(runtime), what_(what), values_(parameters.size()) {
  if (arguments.positional.size() > parameters.size()) {
    runtime.error(Code::kInput, "{} takes at most {} arguments, not {}", what, parameters.size(),
                  arguments.positional.size());
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    size_t i = 0;
    for (std::string_view parameter : parameters) {
      if (parameter.ends_with('?')) parameter.remove_suffix(1);
      if (parameter == name) break;
      ++i;
    }
    if (i == values_.size() || values_[i])
      runtime.error(Code::kInput, "{} does not take the argument '{}'", what, name);
    values_[i] = value;
  }
  size_t i = 0;
  for (std::string_view parameter : parameters) {
    if (!values_[i++] && !parameter.ends_with('?'))
      runtime.error(Code::kInput, "{} needs the argument '{}'", what, parameter);
  }
}

const Text& BoundArguments::text(size_t i) const {
  if (const Text* text = values_[i]->text()) return *text;
  runtime_.error(Code::kInput, "argument {} of {} must be a string, not of kind {}", i + 1, what_, values_[i]->kind());
}

int64_t BoundArguments::integer(size_t i) const {
  if (const std::optional<int64_t> v = values_[i]->as_integer()) return *v;
  runtime_.error(Code::kInput, "argument {} of {} must be an integer, not of kind {}", i + 1, what_,
                 values_[i]->kind());
}

std::vector<Value> iterate(Runtime& runtime, const Value& value) {
  if (const Sequence* list = value.sequence()) {
    runtime.charge_items(list->items.size());
    return list->items;
  }
  std::vector<Value> out;
  if (const Text* text = value.text()) {
    const std::vector<size_t> offsets = char_offsets(text->bytes());
    runtime.charge_items(2 * offsets.size());
    for (size_t i = 0; i + 1 < offsets.size(); ++i)
      out.push_back(Value::string(text->slice(offsets[i], offsets[i + 1])));
  } else if (const Dict* dict = value.dict()) {
    runtime.charge_items(dict->items.size());
    for (const auto& item : dict->items) out.push_back(item.first);
  } else if (!value.is_undefined()) {
    runtime.error(Code::kInput, "a value of kind {} cannot be looped over", value.kind());
  }
  return out;
}

}  // namespace stet::jinja
