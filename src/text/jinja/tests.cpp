// What may stand behind `is`.
#include <string_view>

#include "text/jinja/runtime.h"
#include "text/jinja/text_ops.h"

namespace stet::jinja {
namespace {

using Check = bool (*)(Runtime&, const Value&, const Arguments&);

struct NamedTest {
  std::string_view name;
  Check check;
};

// A test without arguments.
template <bool (*check)(const Value&)>
bool plain(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "a test", arguments, {});
  return check(value);
}

constexpr char kEq[] = "==", kNe[] = "!=", kLt[] = "<", kLe[] = "<=", kGt[] = ">", kGe[] = ">=", kIn[] = "in";

template <const char* op>
bool comparison(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, op, arguments, {"other"});
  return compare(runtime, op, value, args.at(0));
}

int64_t integer_of(Runtime& runtime, const Value& value) {
  if (const std::optional<int64_t> i = value.as_integer()) return *i;
  runtime.error(Code::kInput, "this test needs an integer, not a value of kind {}", value.kind());
}

bool divisible(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "divisibleby", arguments, {"num"});
  return *binary(runtime, "%", Value::integer(integer_of(runtime, value)), args.at(0)).as_number() == 0;
}

template <int rest>
bool parity(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "even and odd", arguments, {});
  return (integer_of(runtime, value) & 1) == rest;
}

template <CaseChange change>
bool has_case(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "upper and lower", arguments, {});
  runtime.charge(value.weight());
  const Text text = print(value);
  const CaseChange other = change == CaseChange::kUpper ? CaseChange::kLower : CaseChange::kUpper;
  return change_case(text, change).bytes() == text.bytes() && change_case(text, other).bytes() != text.bytes();
}

bool is_defined(const Value& v) { return !v.is_undefined(); }
bool is_undefined(const Value& v) { return v.is_undefined(); }
bool is_none(const Value& v) { return v.is_none(); }
bool is_string(const Value& v) { return v.text() != nullptr; }
bool is_mapping(const Value& v) { return v.dict() != nullptr; }
bool is_iterable(const Value& v) { return v.text() || v.sequence() || v.dict() || v.is_undefined(); }
bool is_sequence(const Value& v) { return v.text() || v.sequence() || v.dict() || v.is_undefined(); }
bool is_number(const Value& v) { return v.is_number(); }
bool is_integer(const Value& v) { return v.is_integer(); }
bool is_float(const Value& v) { return v.is_float(); }
bool is_boolean(const Value& v) { return v.is_boolean(); }
bool is_true(const Value& v) { return v.is_boolean() && v.truthy(); }
bool is_false(const Value& v) { return v.is_boolean() && !v.truthy(); }
bool is_callable(const Value& v) { return v.callable() != nullptr; }

// `is sameas` for the values that Python keeps once; other values have no identity here.
bool same_as(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const BoundArguments args(runtime, "sameas", arguments, {"other"});
  const Value& other = args.at(0);
  const bool known = value.is_none() || value.is_boolean() || other.is_none() || other.is_boolean();
  if (!known) runtime.error(Code::kUnsupported, "sameas compares only with true, false and none here");
  return value.kind() == other.kind() && value.truthy() == other.truthy();
}

constexpr NamedTest kTests[] = {
    {"defined", plain<is_defined>},
    {"undefined", plain<is_undefined>},
    {"none", plain<is_none>},
    {"string", plain<is_string>},
    {"mapping", plain<is_mapping>},
    {"iterable", plain<is_iterable>},
    {"sequence", plain<is_sequence>},
    {"number", plain<is_number>},
    {"integer", plain<is_integer>},
    {"float", plain<is_float>},
    {"boolean", plain<is_boolean>},
    {"true", plain<is_true>},
    {"false", plain<is_false>},
    {"callable", plain<is_callable>},
    {"sameas", same_as},
    {"eq", comparison<kEq>},
    {"equalto", comparison<kEq>},
    {"==", comparison<kEq>},
    {"ne", comparison<kNe>},
    {"!=", comparison<kNe>},
    {"lt", comparison<kLt>},
    {"lessthan", comparison<kLt>},
    {"<", comparison<kLt>},
    {"le", comparison<kLe>},
    {"<=", comparison<kLe>},
    {"gt", comparison<kGt>},
    {"greaterthan", comparison<kGt>},
    {">", comparison<kGt>},
    {"ge", comparison<kGe>},
    {">=", comparison<kGe>},
    {"in", comparison<kIn>},
    {"divisibleby", divisible},
    {"even", parity<0>},
    {"odd", parity<1>},
    {"upper", has_case<CaseChange::kUpper>},
    {"lower", has_case<CaseChange::kLower>},
};

}  // namespace

bool apply_test(Runtime& runtime, std::string_view name, const Value& value, const Arguments& arguments) {
  for (const NamedTest& test : kTests) {
    if (test.name == name) return test.check(runtime, value, arguments);
  }
  runtime.error(Code::kUnsupported, "the test '{}' is not supported", name);
}

}  // namespace stet::jinja
