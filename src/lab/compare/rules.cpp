#include "lab/compare/rules.h"

#include <cmath>

#include "base/error.h"
#include "base/strict_json.h"

namespace stet {
namespace {

std::optional<double> number(StrictObject& object, std::string_view key) {
  if (!object.has(key)) return std::nullopt;
  const Json& value = object.any(key);
  if (value.is_null()) return std::nullopt;
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    fail(Code::kInput, "{}: '{}' is no number", object.what(), key);
  return value.get<double>();
}

template <typename T>
Json rule_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

CompareRules parse_rules(std::string_view json, const std::string& what) {
  const Json parsed = parse_json(json, what);
  StrictObject object(parsed, what);
  CompareRules rules;
  if (object.has("every_pair")) rules.every_pair = object.flag("every_pair");
  if (object.has("lower_start")) rules.lower_start = object.flag("lower_start");
  rules.minimum_ratio = number(object, "minimum_ratio");
  rules.minimum_figure = number(object, "minimum_figure");
  if (object.has("minimum_wins") && !object.any("minimum_wins").is_null())
    rules.minimum_wins = object.u32("minimum_wins");
  rules.minimum_saving_ms_per_token = number(object, "minimum_saving_ms_per_token");
  rules.minimum_saving_ms_per_cycle = number(object, "minimum_saving_ms_per_cycle");
  rules.maximum_acceptance_drift = number(object, "maximum_acceptance_drift");
  object.finish();
  return rules;
}

std::string rules_json(const CompareRules& rules) {
  const Json json = {{"every_pair", rules.every_pair},
                     {"lower_start", rules.lower_start},
                     {"minimum_ratio", rule_or_null(rules.minimum_ratio)},
                     {"minimum_figure", rule_or_null(rules.minimum_figure)},
                     {"minimum_wins", rule_or_null(rules.minimum_wins)},
                     {"minimum_saving_ms_per_token", rule_or_null(rules.minimum_saving_ms_per_token)},
                     {"minimum_saving_ms_per_cycle", rule_or_null(rules.minimum_saving_ms_per_cycle)},
                     {"maximum_acceptance_drift", rule_or_null(rules.maximum_acceptance_drift)}};
  return json.dump();
}

}  // namespace stet
