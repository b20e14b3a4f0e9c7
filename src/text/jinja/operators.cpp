// Arithmetic and comparisons, as Python does them on 64-bit integers.
#include <algorithm>
#include <cmath>

#include "text/jinja/runtime.h"

namespace stet::jinja {
namespace {

[[noreturn]] void refuse(Runtime& runtime, std::string_view op, const Value& a, const Value& b) {
  for (const Value* v : {&a, &b}) {
    if (const std::string* name = v->undefined_name()) runtime.error(Code::kInput, "'{}' is undefined", *name);
  }
  runtime.error(Code::kInput, "'{}' does not apply to values of kinds {} and {}", op, a.kind(), b.kind());
}

Value checked(Runtime& runtime, bool overflow, int64_t value) {
  if (overflow) runtime.error(Code::kUnsupported, "an integer needs more than 64 bits");
  return Value::integer(value);
}

Value power(Runtime& runtime, int64_t base, int64_t exponent) {
  if (exponent < 0) return Value::number(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  int64_t result = 1;
  bool overflow = false;
  if (base == 0 || base == 1) return Value::integer(exponent == 0 ? 1 : base);
  if (base == -1) return Value::integer(exponent % 2 == 0 ? 1 : -1);
  for (; exponent > 0 && !overflow; --exponent) overflow = __builtin_mul_overflow(result, base, &result);
  return checked(runtime, overflow, result);
}

// Rounds towards minus infinity; the remainder has the sign of the divisor.
Value divide_integers(Runtime& runtime, bool want_quotient, int64_t a, int64_t b) {
  if (b == 0) runtime.error(Code::kInput, "division by zero");
  if (b == -1) {
    if (!want_quotient) return Value::integer(0);
    return checked(runtime, a == INT64_MIN, a == INT64_MIN ? 0 : -a);
  }
  int64_t quotient = a / b, remainder = a % b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) {
    --quotient;
    remainder += b;
  }
  return Value::integer(want_quotient ? quotient : remainder);
}

Value integers(Runtime& runtime, std::string_view op, int64_t a, int64_t b) {
  int64_t result = 0;
  if (op == "+") {
    const bool overflow = __builtin_add_overflow(a, b, &result);
    return checked(runtime, overflow, result);
  }
  if (op == "-") {
    const bool overflow = __builtin_sub_overflow(a, b, &result);
    return checked(runtime, overflow, result);
  }
  if (op == "*") {
    const bool overflow = __builtin_mul_overflow(a, b, &result);
    return checked(runtime, overflow, result);
  }
  if (op == "//" || op == "%") return divide_integers(runtime, op == "//", a, b);
  if (op == "**") return power(runtime, a, b);
  if (b == 0) runtime.error(Code::kInput, "division by zero");
  return Value::number(static_cast<double>(a) / static_cast<double>(b));
}

Value numbers(Runtime& runtime, std::string_view op, double a, double b) {
  if (op == "+") return Value::number(a + b);
  if (op == "-") return Value::number(a - b);
  if (op == "*") return Value::number(a * b);
  if (op == "**") return Value::number(std::pow(a, b));
  if (b == 0) runtime.error(Code::kInput, "division by zero");
  if (op == "/") return Value::number(a / b);
  if (op == "//") return Value::number(std::floor(a / b));
  const double remainder = std::fmod(a, b);
  return Value::number(remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder);
}

Value concatenate(Runtime& runtime, const Value& a, const Value& b) {
  if (a.text() && b.text()) {
    runtime.charge(a.text()->size() + b.text()->size());
    Text out = *a.text();
    out.append(*b.text());
    return Value::string(std::move(out));
  }
  const Sequence *x = a.sequence(), *y = b.sequence();
  if (x == nullptr || y == nullptr || x->is_tuple != y->is_tuple) refuse(runtime, "+", a, b);
  runtime.charge_items(x->items.size() + y->items.size());
  std::vector<Value> items = x->items;
  items.insert(items.end(), y->items.begin(), y->items.end());
  return Value::list(std::move(items), x->is_tuple);
}

Value repeat(Runtime& runtime, const Value& what, int64_t count) {
  const uint64_t times = count < 0 ? 0 : static_cast<uint64_t>(count);
  const uint64_t unit = what.text() ? what.text()->size() : what.sequence()->items.size() * sizeof(Value);
  if (unit > 0 && times > (uint64_t{1} << 40) / unit) runtime.charge(UINT64_MAX);
  runtime.charge(unit * times + 1);
  if (unit == 0) return what;
  if (const Text* text = what.text()) {
    Text out;
    for (uint64_t i = 0; i < times; ++i) out.append(*text);
    return Value::string(std::move(out));
  }
  std::vector<Value> items;
  for (uint64_t i = 0; i < times; ++i)
    items.insert(items.end(), what.sequence()->items.begin(), what.sequence()->items.end());
  return Value::list(std::move(items), what.sequence()->is_tuple);
}

bool contains(Runtime& runtime, const Value& container, const Value& value) {
  if (const Text* text = container.text()) {
    if (!value.text()) refuse(runtime, "in", value, container);
    return text->bytes().find(value.text()->bytes()) != std::string::npos;
  }
  if (const Dict* dict = container.dict()) {
    runtime.charge(dict->items.size() * value.weight());
    return dict->find(value) != nullptr;
  }
  if (const Sequence* list = container.sequence()) {
    return std::any_of(list->items.begin(), list->items.end(), [&](const Value& v) { return equal(v, value); });
  }
  if (container.is_undefined()) return false;  // loops over nothing
  refuse(runtime, "in", value, container);
}

}  // namespace

Value unary(Runtime& runtime, std::string_view op, const Value& value) {
  if (!value.is_number()) {
    if (const std::string* name = value.undefined_name()) runtime.error(Code::kInput, "'{}' is undefined", *name);
    runtime.error(Code::kInput, "'{}' does not apply to a value of kind {}", op, value.kind());
  }
  if (value.is_float()) return Value::number(op == "-" ? -*value.as_number() : *value.as_number());
  return op == "-" ? integers(runtime, "-", 0, *value.as_integer()) : Value::integer(*value.as_integer());
}

Value binary(Runtime& runtime, std::string_view op, const Value& a, const Value& b) {
  if (op == "~") {
    runtime.charge(a.weight() + b.weight());
    Text out = print(a);
    print(b, out);
    return Value::string(std::move(out));
  }
  if (a.as_integer() && b.as_integer()) return integers(runtime, op, *a.as_integer(), *b.as_integer());
  if (a.is_number() && b.is_number()) return numbers(runtime, op, *a.as_number(), *b.as_number());
  if (op == "+") return concatenate(runtime, a, b);
  if (op == "*" && (a.text() || a.sequence()) && b.as_integer()) return repeat(runtime, a, *b.as_integer());
  if (op == "*" && (b.text() || b.sequence()) && a.as_integer()) return repeat(runtime, b, *a.as_integer());
  if (op == "%" && a.text()) runtime.error(Code::kUnsupported, "formatting strings with % is not supported");
  refuse(runtime, op, a, b);
}

bool compare(Runtime& runtime, std::string_view op, const Value& a, const Value& b) {
  runtime.charge(a.weight() + b.weight());
  if (op == "==") return equal(a, b);
  if (op == "!=") return !equal(a, b);
  if (op == "in") return contains(runtime, b, a);
  if (op == "not in") return !contains(runtime, b, a);
  const std::optional<int> order = compare(a, b);
  if (!order) {
    const bool nan = a.is_number() && b.is_number();
    if (nan) return false;
    refuse(runtime, op, a, b);
  }
  if (op == "<") return *order < 0;
  if (op == "<=") return *order <= 0;
  return op == ">" ? *order > 0 : *order >= 0;
}

}  // namespace stet::jinja
