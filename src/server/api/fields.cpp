#include "server/api/fields.h"

#include <nlohmann/json.hpp>

#include "server/api/api_error.h"

namespace stet {
namespace {

using Json = nlohmann::json;

std::string_view kind_of(const Json& json) {
  if (json.is_string()) return "a string";
  if (json.is_boolean()) return "a boolean";
  if (json.is_number_integer()) return "an integer";
  if (json.is_number()) return "a number with a fraction";
  if (json.is_array()) return "an array";
  if (json.is_object()) return "an object";
  return "null";
}

[[noreturn]] void wrong_kind(const FieldValue& value, std::string_view wanted) {
  refuse(value.path(), "{} is {}; it must be {}", value.path().empty() ? "the body" : value.path(),
         kind_of(value.json()), wanted);
}

// Long names are cut: they are shown in messages and logs.
std::string joined(const std::string& path, const std::string& name) {
  const std::string shown = shortened(name, 100);
  return path.empty() ? shown : path + "." + shown;
}

}  // namespace

bool FieldValue::is_text() const { return json_->is_string(); }
bool FieldValue::is_list() const { return json_->is_array(); }
bool FieldValue::is_whole(int64_t value) const { return json_->is_number_integer() && *json_ == value; }

bool FieldValue::boolean() const {
  if (!json_->is_boolean()) wrong_kind(*this, "true or false");
  return json_->get<bool>();
}

const std::string& FieldValue::text() const {
  if (!json_->is_string()) wrong_kind(*this, "a string");
  return json_->get_ref<const std::string&>();
}

uint64_t FieldValue::whole(uint64_t low, uint64_t high) const {
  if (!json_->is_number_integer()) wrong_kind(*this, fmt::format("an integer from {} to {}", low, high));
  const bool negative = !json_->is_number_unsigned() && json_->get<int64_t>() < 0;
  const uint64_t value = negative ? 0 : json_->get<uint64_t>();
  if (negative || value < low || value > high)
    refuse(path_, "{} is {}; it must be an integer from {} to {}", path_, json_->dump(), low, high);
  return value;
}

float FieldValue::number(double low, double high, bool above) const {
  const std::string_view from = above ? "above" : "from";
  if (!json_->is_number()) wrong_kind(*this, fmt::format("a number {} {} to {}", from, low, high));
  const double value = json_->get<double>();
  // The bounds hold for what the engine will see, too.
  if (value >= low && value <= high) {
    const auto narrow = static_cast<float>(value);
    if (!above || narrow > static_cast<float>(low)) return narrow;
  }
  refuse(path_, "{} is {}; it must be a number {} {} to {}", path_, json_->dump(), from, low, high);
}

std::vector<FieldValue> FieldValue::items() const {
  if (!json_->is_array()) wrong_kind(*this, "an array");
  std::vector<FieldValue> out;
  for (size_t i = 0; i < json_->size(); ++i) out.push_back({(*json_)[i], fmt::format("{}[{}]", path_, i)});
  return out;
}

std::vector<FieldValue> FieldValue::members() const {
  if (!json_->is_object()) wrong_kind(*this, "an object");
  std::vector<FieldValue> out;
  for (const auto& [name, value] : json_->items())
    if (!value.is_null()) out.push_back({value, joined(path_, name), path_.empty() ? 0 : path_.size() + 1});
  return out;
}

std::string_view FieldValue::name() const { return std::string_view(path_).substr(name_at_); }

std::vector<int32_t> FieldValue::token_ids(uint32_t vocab) const {
  if (!json_->is_array()) wrong_kind(*this, "an array of token ids");
  std::vector<int32_t> out;
  out.reserve(json_->size());
  for (size_t i = 0; i < json_->size(); ++i) {
    const Json& id = (*json_)[i];
    const bool good = id.is_number_unsigned() && id.get<uint64_t>() < vocab;
    if (!good) {
      const std::string path = fmt::format("{}[{}]", path_, i);
      refuse(path, "{} is {}; the model's token ids are integers from 0 to {}", path,
             id.is_number() ? id.dump() : std::string(kind_of(id)), vocab - 1);
    }
    out.push_back(static_cast<int32_t>(id.get<uint64_t>()));
  }
  return out;
}

void refuse_unless_neutral(const FieldValue& value, const FieldRule& rule) {
  const Json neutral = Json::parse(rule.neutral);
  if (std::ranges::find(neutral, value.json()) != neutral.end()) return;
  std::string accepted;
  for (const Json& choice : neutral) accepted += fmt::format("{}{}", accepted.empty() ? "" : " or ", choice.dump());
  refuse(value.path(), "{} is not supported{}{}{}", value.path(),
         accepted.empty() ? "" : fmt::format(", unless it is {}", accepted), rule.advice.empty() ? "" : ": ",
         rule.advice);
}

void refuse_unknown(const FieldValue& value) {
  refuse(value.path(),
         "{} is not known to this server, and may have been meant to change the answer: leave it out (docs/api.md "
         "lists the fields)",
         value.path());
}

}  // namespace stet
