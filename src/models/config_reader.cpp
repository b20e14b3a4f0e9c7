#include "models/config_reader.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace stet {
namespace {

std::optional<double> as_number(const MetaValue& v) {
  if (const auto* u = std::get_if<uint64_t>(&v.value)) return static_cast<double>(*u);
  if (const auto* i = std::get_if<int64_t>(&v.value)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&v.value)) return *d;
  return std::nullopt;
}

}  // namespace

ConfigReader::ConfigReader(const TensorSource& source, std::string architecture)
    : source_(source), architecture_(std::move(architecture)) {}

const MetaValue* ConfigReader::find(std::string_view key) {
  const std::string name = full(key);
  read_.insert(name);
  const auto it = source_.metadata().find(name);
  return it == source_.metadata().end() ? nullptr : &it->second;
}

bool ConfigReader::has(std::string_view key) const { return source_.metadata().contains(full(key)); }

double ConfigReader::number(std::string_view key, double low, double high) {
  const MetaValue* v = find(key);
  if (v == nullptr) fail(Code::kInput, "the model file has no key {}; it is incomplete, get it again", full(key));
  const std::optional<double> x = as_number(*v);
  if (!x.has_value()) fail(Code::kUnsupported, "the value of {} is not a single number; stet runs models with one value for all layers", full(key));
  if (!std::isfinite(*x) || *x < low || *x > high)
    fail(Code::kInput, "{} is {}; stet accepts {} to {}", full(key), *x, low, high);
  return *x;
}

double ConfigReader::number_or(std::string_view key, double low, double high, double otherwise) {
  return has(key) ? number(key, low, high) : (find(key), otherwise);
}

uint32_t ConfigReader::u32(std::string_view key, uint32_t low, uint32_t high) {
  const double x = number(key, low, high);
  if (x != std::floor(x)) fail(Code::kInput, "{} is {}, not an integer", full(key), x);
  return static_cast<uint32_t>(x);
}

uint32_t ConfigReader::u32_or(std::string_view key, uint32_t low, uint32_t high, uint32_t otherwise) {
  return has(key) ? u32(key, low, high) : (find(key), otherwise);
}

std::vector<uint32_t> ConfigReader::u32_list(std::string_view key, size_t size, uint32_t low, uint32_t high) {
  const MetaValue* v = find(key);
  const auto* list = v == nullptr ? nullptr : std::get_if<std::shared_ptr<const MetaArray>>(&v->value);
  if (list == nullptr || (*list)->size() != size) fail(Code::kInput, "{} is no list of {} integers", full(key), size);
  return u32_list(key, low, high);
}

std::vector<uint32_t> ConfigReader::u32_list(std::string_view key, uint32_t low, uint32_t high) {
  const MetaValue* v = find(key);
  const auto* list = v == nullptr ? nullptr : std::get_if<std::shared_ptr<const MetaArray>>(&v->value);
  if (list == nullptr) fail(Code::kInput, "{} is no list of integers", full(key));
  std::vector<uint32_t> out;
  for (const MetaValue& item : **list) {
    const std::optional<double> x = as_number(item);
    if (!x || *x != std::floor(*x) || *x < low || *x > high)
      fail(Code::kInput, "{} holds something other than integers from {} to {}", full(key), low, high);
    out.push_back(static_cast<uint32_t>(*x));
  }
  return out;
}

std::string ConfigReader::text_or(std::string_view key, std::string_view otherwise) {
  const MetaValue* v = find(key);
  if (v == nullptr) return std::string(otherwise);
  if (const auto* s = std::get_if<std::string>(&v->value)) return *s;
  fail(Code::kInput, "{} is not a text", full(key));
}

void ConfigReader::finish(std::span<const std::string_view> harmless) const {
  const std::string prefix = architecture_ + ".";
  for (const auto& [name, value] : source_.metadata()) {
    if (!name.starts_with(prefix) || read_.contains(name)) continue;
    const std::string_view key = std::string_view(name).substr(prefix.size());
    if (std::find(harmless.begin(), harmless.end(), key) == harmless.end())
      fail(Code::kUnsupported, "the model file sets {}, which stet does not know for this architecture: it could change the answer", name);
  }
}

}  // namespace stet
