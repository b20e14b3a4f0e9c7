// Looking into JSON that may lack anything: what is not there is null, and never an error.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/strict_json.h"

namespace stet {

// A member of an object; null where `json` is none or lacks it.
const Json& look(const Json& json, std::string_view key);
// Through several objects.
template <typename... Keys>
const Json& look(const Json& json, std::string_view key, std::string_view next, const Keys&... keys) {
  return look(look(json, key), next, keys...);
}

std::optional<double> number_of(const Json& json);    // finite, and of at most 15 digits
std::string text_of(const Json& json);                // of a string; empty for anything else
std::vector<std::string> texts_of(const Json& json);  // of an array of strings
std::vector<double> numbers_of(const Json& json);     // of an array of numbers

// Any value for people: texts as they are, "–" for null, objects and arrays as JSON.
std::string shown(const Json& json);
std::string shown_number(const std::optional<double>& value, int decimals);  // "–" for nothing
std::string shown_share(const std::optional<double>& value);                 // "48.8 %"
std::string shown_seconds(const std::optional<double>& value);               // "210 ms", "12.40 s"

// Every leaf of a JSON with the path to it: {"a":{"b":[1,2]}} gives ("a.b", "[1,2]"). Arrays of scalars stay together.
std::vector<std::pair<std::string, std::string>> flattened(const Json& json);

}  // namespace stet
