#include "base/strict_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "base/error.h"

namespace stet {
namespace {

constexpr int64_t kMaxNanoseconds = std::numeric_limits<int64_t>::max() / 4;  // differences of two stay in range

std::optional<int64_t> whole_json_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const uint64_t n = value.get<uint64_t>();
    if (n > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(n);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  return std::nullopt;
}

// Parsing keeps its own stack, but printing and comparing recurse. Of two members of one name, others may take the other one.
template <typename AnyJson>
AnyJson parsed(std::string_view text, const std::string& what) {
  std::vector<std::unordered_set<std::string>> names;  // of the open objects
  using Event = typename AnyJson::parse_event_t;
  const auto guard = [&](int depth, Event event, AnyJson& value) {
    if (depth > kMaxJsonDepth) fail(Code::kInput, "{}: JSON nested deeper than {}", what, kMaxJsonDepth);
    if (event == Event::object_start) names.emplace_back();
    if (event == Event::object_end) names.pop_back();
    if (event == Event::key && !names.back().insert(value.template get<std::string>()).second)
      fail(Code::kInput, "{}: two members of one object are called {}", what,
           value.dump(-1, ' ', false, AnyJson::error_handler_t::replace));
    return true;
  };
  try {
    return AnyJson::parse(text, guard);
  } catch (const nlohmann::json::exception& e) {
    fail(Code::kInput, "{}: not JSON: {}", what, e.what());
  }
}

}  // namespace

Json parse_json(std::string_view text, const std::string& what) { return parsed<Json>(text, what); }

LargeJson parse_large_json(std::string_view text, const std::string& what) { return parsed<LargeJson>(text, what); }

std::string dump_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

StrictObject::StrictObject(const Json& json, std::string what) : json_(json), what_(std::move(what)) {
  if (!json_.is_object()) fail(Code::kInput, "{}: not a JSON object", what_);
}

bool StrictObject::has(std::string_view key) const { return json_.contains(std::string(key)); }

const Json& StrictObject::member(std::string_view key) {
  asked_.emplace_back(key);
  const auto it = json_.find(asked_.back());
  if (it == json_.end()) fail(Code::kInput, "{}: '{}' is missing", what_, key);
  return *it;
}

const Json& StrictObject::any(std::string_view key) { return member(key); }

std::string StrictObject::text(std::string_view key) {
  const Json& value = member(key);
  if (!value.is_string()) fail(Code::kInput, "{}: '{}' is not a string", what_, key);
  return value.get<std::string>();
}

bool StrictObject::flag(std::string_view key) {
  const Json& value = member(key);
  if (!value.is_boolean()) fail(Code::kInput, "{}: '{}' is neither true nor false", what_, key);
  return value.get<bool>();
}

int64_t StrictObject::whole(std::string_view key, int64_t low, int64_t high) {
  const std::optional<int64_t> value = whole_json_number(member(key));
  if (!value || *value < low || *value > high)
    fail(Code::kInput, "{}: '{}' is not a whole number from {} to {}", what_, key, low, high);
  return *value;
}

double StrictObject::number(std::string_view key, double low, double high) {
  const Json& value = member(key);
  const double x = value.is_number() ? value.get<double>() : std::nan("");
  if (!(x >= low && x <= high)) fail(Code::kInput, "{}: '{}' is not a number from {} to {}", what_, key, low, high);
  return x;
}

uint32_t StrictObject::u32(std::string_view key) {
  return static_cast<uint32_t>(whole(key, 0, std::numeric_limits<uint32_t>::max()));
}

int64_t StrictObject::nanoseconds(std::string_view key) { return whole(key, 0, kMaxNanoseconds); }

std::vector<int32_t> StrictObject::ids(std::string_view key) {
  const Json& value = member(key);
  if (!value.is_array()) fail(Code::kInput, "{}: '{}' is not a list of token ids", what_, key);
  std::vector<int32_t> list;
  list.reserve(value.size());
  for (const Json& item : value) {
    const std::optional<int64_t> id = whole_json_number(item);
    if (!id || *id < 0 || *id > std::numeric_limits<int32_t>::max())
      fail(Code::kInput, "{}: '{}' holds something that is no token id", what_, key);
    list.push_back(static_cast<int32_t>(*id));
  }
  return list;
}

std::string StrictObject::object(std::string_view key) {
  const Json& value = member(key);
  if (!value.is_object()) fail(Code::kInput, "{}: '{}' is not a JSON object", what_, key);
  return dump_line(value);
}

std::optional<uint32_t> StrictObject::optional_u32(std::string_view key) {
  return has(key) ? std::optional(u32(key)) : std::nullopt;
}
std::optional<uint64_t> StrictObject::optional_u64(std::string_view key) {
  if (!has(key)) return std::nullopt;
  return static_cast<uint64_t>(whole(key, 0, std::numeric_limits<int64_t>::max()));
}
std::optional<int64_t> StrictObject::optional_nanoseconds(std::string_view key) {
  return has(key) ? std::optional(nanoseconds(key)) : std::nullopt;
}
std::optional<std::vector<int32_t>> StrictObject::optional_ids(std::string_view key) {
  return has(key) ? std::optional(ids(key)) : std::nullopt;
}

std::optional<std::vector<double>> StrictObject::optional_numbers(std::string_view key) {
  if (!has(key)) return std::nullopt;
  const Json& value = member(key);
  if (!value.is_array()) fail(Code::kInput, "{}: '{}' is not a list of numbers", what_, key);
  std::vector<double> list;
  for (const Json& item : value) {
    if (!item.is_number_float()) fail(Code::kInput, "{}: '{}' holds something that is no number", what_, key);
    list.push_back(item.get<double>());
  }
  return list;
}

std::string StrictObject::not_asked_for() const {
  for (const auto& [key, value] : json_.items())
    if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) return key;
  return "";
}

void StrictObject::finish() const {
  if (const std::string key = not_asked_for(); !key.empty()) fail(Code::kInput, "{}: '{}' is not known", what_, key);
}

}  // namespace stet
