// Functions that every template can call.
#include <string>

#include "text/jinja/runtime.h"

namespace stet::jinja {
namespace {

constexpr int64_t kMaxRange = 100000;  // Jinja's sandbox has the same limit

Value range(Runtime& runtime, Arguments& arguments) {
  const BoundArguments args(runtime, "range", arguments, {"start", "stop?", "step?"});
  const int64_t begin = args.has(1) ? args.integer(0) : 0;
  const int64_t end = args.has(1) ? args.integer(1) : args.integer(0);
  const int64_t step = args.integer(2, 1);
  if (step == 0) runtime.error(Code::kInput, "range with a step of zero");
  std::vector<Value> out;
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    if (static_cast<int64_t>(out.size()) >= kMaxRange)
      runtime.error(Code::kInput, "range has more than {} members", kMaxRange);
    out.push_back(Value::integer(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  runtime.charge_items(out.size());
  return Value::list(std::move(out));
}

Value make_namespace(Runtime& runtime, Arguments& arguments) {
  Value result = runtime.make_namespace();
  for (const Value& given : arguments.positional) {
    if (!given.dict())
      runtime.error(Code::kInput, "namespace takes dictionaries, not a value of kind {}", given.kind());
    for (const auto& [key, value] : given.dict()->items) {
      if (!key.text()) runtime.error(Code::kInput, "names in a namespace must be strings");
      result.object()->set(key.text()->bytes(), value);
    }
  }
  for (const auto& [name, value] : arguments.named) result.object()->set(name, value);
  return result;
}

Value make_dict(Runtime& runtime, Arguments& arguments) {
  Dict out;
  if (arguments.positional.size() > 1)
    runtime.error(Code::kInput, "dict takes one dictionary, not {}", arguments.positional.size());
  if (!arguments.positional.empty()) {
    const Dict* given = arguments.positional[0].dict();
    if (given == nullptr)
      runtime.error(Code::kUnsupported, "dict of a value of kind {}", arguments.positional[0].kind());
    runtime.charge_items(2 * given->items.size());
    out.items = given->items;
  }
  for (const auto& [name, value] : arguments.named) {
    runtime.charge(out.items.size() + sizeof(Value));
    out.set(Value::string(name), value);
  }
  return Value::dict(std::move(out));
}

Value raise_exception(Runtime& runtime, Arguments& arguments) {
  const BoundArguments args(runtime, "raise_exception", arguments, {"message"});
  runtime.error(Code::kInput, "the template refuses this conversation: {}", print(args.at(0)).bytes());
}

// Only fields that do not depend on the locale or the time zone.
Value strftime_now(Runtime& runtime, Arguments& arguments) {
  const BoundArguments args(runtime, "strftime_now", arguments, {"format"});
  const std::string& format = args.text(0).bytes();
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out.push_back(format[i]);
      continue;
    }
    const char field = i + 1 < format.size() ? format[++i] : '\0';
    const std::string pattern{'%', field, '\0'};
    constexpr std::string_view kFields = "YmdHMSyBbAapIjFT%";
    if (field == '\0' || kFields.find(field) == std::string_view::npos) {
      runtime.error(Code::kUnsupported, "strftime_now with the format '{}'", format);
    }
    char buffer[64];
    out.append(buffer, std::strftime(buffer, sizeof buffer, pattern.c_str(), &runtime.now()));
    runtime.charge(sizeof buffer);
  }
  return Value::string(std::move(out));
}

}  // namespace

Value find_global(std::string_view name) {
  const auto function = [&](Value (*call)(Runtime&, Arguments&)) {
    return Value::callable({std::string(name), call, 1});
  };
  if (name == "range") return function(range);
  if (name == "namespace") return function(make_namespace);
  if (name == "dict") return function(make_dict);
  if (name == "raise_exception") return function(raise_exception);
  if (name == "strftime_now") return function(strftime_now);
  for (const std::string_view refused :
       {"cycler", "joiner", "lipsum", "self", "super", "caller", "varargs", "kwargs"}) {
    if (name != refused) continue;
    const std::string text = fmt::format("'{}' is not supported", name);
    return Value::callable(
        {std::string(name),
         [text](Runtime& runtime, Arguments&) -> Value { runtime.error(Code::kUnsupported, "{}", text); }, 1});
  }
  return Value();
}

}  // namespace stet::jinja
