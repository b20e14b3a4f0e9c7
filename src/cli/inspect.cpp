#include "cli/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/visible_text.h"

namespace stet {
namespace {

using Json = nlohmann::ordered_json;
using Strings = std::shared_ptr<const std::vector<std::string>>;
using Array = std::shared_ptr<const MetaArray>;

constexpr size_t kShownBytes = 100;   // of a string
constexpr size_t kShownElements = 6;  // of an array

template <typename... Args>
void put(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

// 98362432 as 98,362,432.
std::string grouped(uint64_t n) {
  std::string digits = std::to_string(n);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string quoted(std::string_view text, size_t limit) {
  if (text.size() <= limit) return fmt::format("\"{}\"", visible_text(text));
  size_t cut = limit;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;  // not inside a character
  return fmt::format("\"{}\"... ({} bytes)", visible_text(text.substr(0, cut)), grouped(text.size()));
}

std::string shown_number(double x) {
  const float narrow = static_cast<float>(x);
  return static_cast<double>(narrow) == x ? fmt::format("{}", narrow) : fmt::format("{}", x);
}

template <typename T, typename Show>
std::string shown_array(const std::vector<T>& values, Show show) {
  std::string out = "[";
  for (size_t i = 0; i < std::min(values.size(), kShownElements); ++i) {
    if (i > 0) out += ", ";
    out += show(values[i]);
  }
  if (values.size() <= kShownElements) return out + "]";
  return out + fmt::format(", ...] ({} values)", grouped(values.size()));
}

std::string shown_value(const MetaValue& v) {
  if (const auto* x = std::get_if<uint64_t>(&v.value)) return std::to_string(*x);
  if (const auto* x = std::get_if<int64_t>(&v.value)) return std::to_string(*x);
  if (const auto* x = std::get_if<double>(&v.value)) return shown_number(*x);
  if (const auto* x = std::get_if<bool>(&v.value)) return *x ? "true" : "false";
  if (const auto* x = std::get_if<std::string>(&v.value)) return quoted(*x, kShownBytes);
  if (const auto* x = std::get_if<Array>(&v.value)) return shown_array(**x, shown_value);
  return shown_array(*std::get<Strings>(v.value), [](const std::string& s) { return quoted(s, 30); });
}

Json json_value(const MetaValue& v) {
  if (const auto* x = std::get_if<Array>(&v.value)) {
    Json array = Json::array();
    for (const MetaValue& element : **x) array.push_back(json_value(element));
    return array;
  }
  if (const auto* x = std::get_if<Strings>(&v.value)) return **x;
  if (const auto* x = std::get_if<uint64_t>(&v.value)) return *x;
  if (const auto* x = std::get_if<int64_t>(&v.value)) return *x;
  if (const auto* x = std::get_if<double>(&v.value)) return *x;
  if (const auto* x = std::get_if<bool>(&v.value)) return *x;
  return std::get<std::string>(v.value);
}

std::string shown_shape(const std::vector<uint64_t>& shape) { return fmt::format("{}", fmt::join(shape, " x ")); }

void put_head(std::string& out, const ModelSummary& m) {
  put(out, "{}{}\n", visible_text(m.name), m.synthetic ? "  (SYNTHETIC: random weights)" : "");
  for (const SourceFile& file : m.files)
    put(out, "  file             {}: {} bytes{}\n", visible_text(file.name), grouped(file.bytes),
        file.gguf_version == 0 ? ""
                               : fmt::format(", GGUF version {}, alignment {}", file.gguf_version, file.alignment));
  put(out, "  parameters       {}\n", grouped(m.parameters));
  put(out, "  weights          {} bytes\n", grouped(m.weight_bytes));
  put(out, "  read per token   {} bytes of weights\n", grouped(m.bytes_per_token));
}

void put_formats(std::string& out, const ModelSummary& m) {
  put(out, "\nformats\n");
  for (const FormatSummary& f : m.formats) {
    const double bits = 8.0 * static_cast<double>(f.bytes) / static_cast<double>(f.elements);
    put(out, "  {:<8} {:>5} tensors {:>18} parameters {:>18} bytes  {}\n", f.format, f.tensors, grouped(f.elements),
        grouped(f.bytes), f.supported ? fmt::format("{:.2f} bits each", bits) : "NOT SUPPORTED by stet");
  }
}

void put_tensors(std::string& out, const ModelSummary& m) {
  size_t width = 0, shape_width = 0;
  for (const DeclaredTensor& t : m.tensors) {
    width = std::max(width, visible_text(t.name).size());
    shape_width = std::max(shape_width, shown_shape(t.shape).size());
  }
  put(out, "\ntensors ({})\n", m.tensors.size());
  for (const DeclaredTensor& t : m.tensors)
    put(out, "  {:<{}}  {:<{}}  {:<8} {:>15} bytes\n", visible_text(t.name), width, shown_shape(t.shape), shape_width,
        t.format, t.bytes > 0 ? grouped(t.bytes) : "unknown");
}

}  // namespace

std::string inspect_text(const ModelSummary& m) {
  std::string out;
  put_head(out, m);
  put(out, "\nmetadata ({})\n", m.metadata.size());
  for (const auto& [key, value] : m.metadata) put(out, "  {} = {}\n", visible_text(key), shown_value(value));
  put_formats(out, m);
  put_tensors(out, m);
  return out;
}

std::string inspect_json(const ModelSummary& m) {
  Json j = {{"name", m.name}, {"synthetic", m.synthetic}, {"files", Json::array()}};
  for (const SourceFile& file : m.files) {
    j["files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
    if (file.gguf_version != 0) j["files"].back().update({{"gguf_version", file.gguf_version}, {"alignment", file.alignment}});
  }
  j["parameters"] = m.parameters;
  j["weight_bytes"] = m.weight_bytes;
  j["bytes_per_token"] = m.bytes_per_token;
  j["formats"] = Json::array();
  for (const FormatSummary& f : m.formats)
    j["formats"].push_back({{"format", f.format},
                            {"supported", f.supported},
                            {"tensors", f.tensors},
                            {"parameters", f.elements},
                            {"bytes", f.bytes}});
  j["metadata"] = Json::object();
  for (const auto& [key, value] : m.metadata) j["metadata"][key] = json_value(value);
  j["tensors"] = Json::array();
  for (const DeclaredTensor& t : m.tensors)
    j["tensors"].push_back({{"name", t.name},
                            {"shape", t.shape},
                            {"format", t.format},
                            {"supported", t.supported},
                            {"bytes", t.bytes > 0 ? Json(t.bytes) : Json(nullptr)}});
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace stet
