// JSON to template values, for tests: every string is marked as the input's.
#pragma once

#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "text/jinja/template.h"

namespace stet::test {

template <typename Json>
jinja::Value to_value(const Json& json) {
  using jinja::Value;
  if (json.is_boolean()) return Value::boolean(json);
  if (json.is_number_integer()) return Value::integer(json);
  if (json.is_number()) return Value::number(json);
  if (json.is_string()) return Value::string(json.template get<std::string>(), kUntrustedSource);
  if (json.is_array()) {
    std::vector<Value> items;
    for (const auto& item : json) items.push_back(to_value(item));
    return Value::list(std::move(items));
  }
  if (!json.is_object()) return Value::none();
  jinja::Dict dict;
  for (const auto& [key, value] : json.items()) dict.set(Value::string(key, kUntrustedSource), to_value(value));
  return Value::dict(std::move(dict));
}

// The moment that the golden vectors see: 2026-03-05 14:07:09, a Thursday.
inline std::tm golden_time() {
  std::tm t{};
  t.tm_year = 126;
  t.tm_mon = 2;
  t.tm_mday = 5;
  t.tm_hour = 14;
  t.tm_min = 7;
  t.tm_sec = 9;
  t.tm_wday = 4;
  t.tm_yday = 63;
  return t;
}

}  // namespace stet::test
