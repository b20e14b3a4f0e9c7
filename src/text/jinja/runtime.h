// What filters, tests and functions may ask of the interpreter: where the template is, and how much work is left.
#pragma once

#include <cstdint>
#include <ctime>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/jinja/value.h"

namespace stet::jinja {

// A template comes from a file that nobody checked. Work is counted in bytes touched.
struct Limits {
  uint64_t work = 64 << 20;  // plus work_per_input_byte for each byte of the variables
  uint64_t work_per_input_byte = 32;
  int call_depth = 64;   // macros
  int eval_depth = 700;  // expressions and statements that are being evaluated
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  // Throws Error(code): "chat template line N: ...".
  template <typename... Args>
  [[noreturn]] void error(Code code, fmt::format_string<Args...> format, Args&&... args) const {
    fail(code, "chat template line {}: {}", line_, fmt::format(format, std::forward<Args>(args)...));
  }
  // Counts work; throws Error(kInput) when the template has done too much.
  void charge(uint64_t bytes) {
    if (bytes > work_left_) error(Code::kInput, "the template does more work than is allowed; it may not end");
    work_left_ -= bytes;
  }
  // What a new list of so many items costs.
  void charge_items(uint64_t items) { charge(items * sizeof(Value)); }
  const std::tm& now() const { return now_; }
  virtual Value make_namespace() = 0;

 protected:
  int line_ = 1;
  uint64_t work_left_ = 0;
  std::tm now_{};
};

// Assigns arguments to parameters by position, then by name. A name ending in '?' may be left out.
class BoundArguments {
 public:
  // Throws Error(kInput) for arguments that do not fit; `what` is for the message.
  BoundArguments(const Runtime& runtime, std::string_view what, const Arguments& arguments,
                 std::initializer_list<std::string_view> parameters);

  bool has(size_t i) const { return values_[i].has_value(); }
  const Value& at(size_t i) const { return *values_[i]; }
  Value get(size_t i, Value missing) const { return values_[i] ? *values_[i] : std::move(missing); }
  // Each throws Error(kInput) for a value of another kind.
  const Text& text(size_t i) const;
  int64_t integer(size_t i) const;
  int64_t integer(size_t i, int64_t missing) const { return has(i) ? integer(i) : missing; }
  bool truth(size_t i, bool missing) const { return has(i) ? at(i).truthy() : missing; }

 private:
  const Runtime& runtime_;
  std::string what_;
  std::vector<std::optional<Value>> values_;
};

// The members of anything that can be looped over: list items, characters of a string, keys of a dictionary, nothing
// for an undefined value. Throws Error(kInput) for other kinds.
std::vector<Value> iterate(Runtime& runtime, const Value& value);

// Each throws Error(kUnsupported) for a name that this engine lacks.
Value apply_filter(Runtime& runtime, std::string_view name, const Value& value, const Arguments& arguments);
bool apply_test(Runtime& runtime, std::string_view name, const Value& value, const Arguments& arguments);

// Python's object.name in the order of Jinja: methods first, then keys. Undefined when there is neither.
Value get_attribute(Runtime& runtime, const Value& object, std::string_view name);
// Python's object[key]: keys and indices first, then attributes. Undefined when there is neither.
Value get_item(Runtime& runtime, const Value& object, const Value& key);
Value get_slice(Runtime& runtime, const Value& object, const Value& begin, const Value& end, const Value& step);

// The method of a string or dictionary bound to it, or undefined.
Value find_method(const Value& object, std::string_view name);
// range, namespace, dict, raise_exception, strftime_now; undefined for any other name.
Value find_global(std::string_view name);

Value unary(Runtime& runtime, std::string_view op, const Value& value);
Value binary(Runtime& runtime, std::string_view op, const Value& a, const Value& b);
// `op` is one of == != < <= > >= in, not in.
bool compare(Runtime& runtime, std::string_view op, const Value& a, const Value& b);

}  // namespace stet::jinja
