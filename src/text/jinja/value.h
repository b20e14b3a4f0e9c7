// Values of the template language, with Python's meaning: what is true, equal, ordered, and how it prints.
//
// Strings are Text, so every value that came from a message still says so after any operation. Lists and dictionaries
// never change; a namespace is the only thing that does.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "text/provenance.h"

namespace stet::jinja {

// What is wrong with a value where the line is not known; the interpreter adds it.
class ValueError : public Error {
 public:
  using Error::Error;
};

class Value;
class Runtime;

struct Undefined {
  std::string name;  // for messages
};
struct None {};

struct Sequence {
  std::vector<Value> items;
  bool is_tuple = false;
  int depth = 1;
  uint64_t weight = 1;
};

// In insertion order.
struct Dict {
  std::vector<std::pair<Value, Value>> items;
  int depth = 1;
  uint64_t weight = 1;

  // The value of a key, or nullptr.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(Value key, Value value);
};

// What namespace() makes: the only value that a template can change. `loop` is one too.
struct Namespace {
  std::vector<std::pair<std::string, Value>> fields;
  bool writable = false;  // made by namespace(); a loop is not
  int depth = 0;          // of what a loop holds; writable ones are emptied by their owner and need none

  const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct Callable {
  std::string name;
  std::function<Value(Runtime&, Arguments&)> call;
  int depth = 1;  // of what it is bound to
};

// Values nest at most so deep, so that no walk over them can exhaust the stack.
inline constexpr int kMaxValueDepth = 200;

class Value {
 public:
  Value() = default;  // undefined
  static Value undefined(std::string name) { return Value(Undefined{std::move(name)}); }
  static Value none() { return Value(None{}); }
  static Value boolean(bool v) { return Value(v); }
  static Value integer(int64_t v) { return Value(v); }
  static Value number(double v) { return Value(v); }
  static Value string(Text v) { return Value(std::make_shared<const Text>(std::move(v))); }
  static Value string(std::string v, Source source = kTemplateSource) { return string(Text(std::move(v), source)); }
  // Both throw Error(kInput) for values nested deeper than kMaxValueDepth.
  static Value list(std::vector<Value> items, bool is_tuple = false);
  static Value dict(Dict items);
  static Value object(std::shared_ptr<Namespace> v) { return Value(std::move(v)); }
  static Value callable(Callable v) { return Value(std::make_shared<const Callable>(std::move(v))); }

  bool is_undefined() const { return std::holds_alternative<Undefined>(v_); }
  bool is_none() const { return std::holds_alternative<None>(v_); }
  bool is_boolean() const { return std::holds_alternative<bool>(v_); }
  bool is_integer() const { return std::holds_alternative<int64_t>(v_); }  // not a boolean
  bool is_float() const { return std::holds_alternative<double>(v_); }
  bool is_number() const { return is_boolean() || is_integer() || is_float(); }

  // The content, or nullptr where the value is of another kind.
  const Text* text() const { return pointee<const Text>(); }
  const Sequence* sequence() const { return pointee<const Sequence>(); }
  const Dict* dict() const { return pointee<const Dict>(); }
  const Callable* callable() const { return pointee<const Callable>(); }
  Namespace* object() const { return pointee<Namespace>(); }
  const std::string* undefined_name() const {
    const auto* u = std::get_if<Undefined>(&v_);
    return u == nullptr ? nullptr : &u->name;
  }

  // Booleans count as 0 and 1. Nothing for other kinds.
  std::optional<int64_t> as_integer() const;
  std::optional<double> as_number() const;

  bool truthy() const;
  int depth() const;
  // How much a walk over the value visits, in bytes and items. Lists may share members, so this can be far more than
  // the memory they take.
  uint64_t weight() const;
  // For messages: "string", "list" and so on.
  std::string_view kind() const;

 private:
  using Storage =
      std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const Text>, std::shared_ptr<const Sequence>,
                   std::shared_ptr<const Dict>, std::shared_ptr<Namespace>, std::shared_ptr<const Callable>>;

  explicit Value(Storage v) : v_(std::move(v)) {}

  template <typename T>
  T* pointee() const {
    const auto* p = std::get_if<std::shared_ptr<T>>(&v_);
    return p == nullptr ? nullptr : p->get();
  }

  Storage v_;
};

// Python's ==.
bool equal(const Value& a, const Value& b);
// -1, 0 or 1, or nothing where Python refuses to order the two.
std::optional<int> compare(const Value& a, const Value& b);

// What `{{ value }}` prints (Python's str). Throws Error(kUnsupported) for functions and namespaces.
void print(const Value& value, Text& out);
Text print(const Value& value);
// Python's repr.
void print_repr(const Value& value, Text& out);
std::string print_float(double v);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<int> indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
// Python's json.dumps. Throws Error(kInput) for values that JSON does not have.
void print_json(const Value& value, const JsonStyle& style, Text& out);

}  // namespace stet::jinja
