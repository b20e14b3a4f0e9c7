#include "lab/report/look.h"

#include <fmt/format.h>

#include <cmath>

namespace stet {
namespace {

constexpr const char* kNothing = "–";
// No figure of ours is as large, and a picture has no room for it.
constexpr double kLargest = 1e15;

bool holds_scalars(const Json& json) {
  for (const Json& item : json)
    if (item.is_structured()) return false;
  return true;
}

void flatten(const Json& json, const std::string& path, std::vector<std::pair<std::string, std::string>>& out) {
  const bool leaf = !json.is_structured() || json.empty() || (json.is_array() && holds_scalars(json));
  if (leaf) {
    out.emplace_back(path, shown(json));
    return;
  }
  if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) flatten(json[i], fmt::format("{}[{}]", path, i), out);
    return;
  }
  for (const auto& [key, value] : json.items()) flatten(value, path.empty() ? key : path + "." + key, out);
}

}  // namespace

const Json& look(const Json& json, std::string_view key) {
  static const Json null;
  if (!json.is_object()) return null;
  const auto it = json.find(key);
  return it == json.end() ? null : *it;
}

std::optional<double> number_of(const Json& json) {
  if (!json.is_number()) return std::nullopt;
  const double value = json.get<double>();
  return std::abs(value) <= kLargest ? std::optional(value) : std::nullopt;
}

std::string text_of(const Json& json) { return json.is_string() ? json.get<std::string>() : ""; }

std::vector<std::string> texts_of(const Json& json) {
  std::vector<std::string> texts;
  if (json.is_array())
    for (const Json& item : json) texts.push_back(shown(item));
  return texts;
}

std::vector<double> numbers_of(const Json& json) {
  std::vector<double> numbers;
  if (json.is_array())
    for (const Json& item : json)
      if (const auto n = number_of(item)) numbers.push_back(*n);
  return numbers;
}

std::string shown(const Json& json) {
  if (json.is_null()) return kNothing;
  if (json.is_string()) return json.get<std::string>();
  if (json.is_boolean()) return json.get<bool>() ? "yes" : "no";
  if (json.is_number_float()) return fmt::format("{}", json.get<double>());
  return dump_line(json);
}

std::string shown_number(const std::optional<double>& value, int decimals) {
  return value ? fmt::format("{:.{}f}", *value, decimals) : kNothing;
}

std::string shown_share(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f} %", 100.0 * *value) : kNothing;
}

std::string shown_seconds(const std::optional<double>& value) {
  if (!value) return kNothing;
  return *value < 1 ? fmt::format("{:.1f} ms", 1000.0 * *value) : fmt::format("{:.2f} s", *value);
}

std::vector<std::pair<std::string, std::string>> flattened(const Json& json) {
  std::vector<std::pair<std::string, std::string>> out;
  flatten(json, "", out);
  return out;
}

}  // namespace stet
