#include "weights/summary.h"

#include <algorithm>

#include "weights/gguf_types.h"

namespace stet {
namespace {

constexpr std::string_view kEmbedding = "token_embd.weight";
constexpr std::string_view kHead = "output.weight";

uint64_t elements_of(const std::vector<uint64_t>& shape) {
  uint64_t n = 1;
  for (const uint64_t d : shape) n *= d;
  return n;
}

uint64_t bytes_per_token(const std::vector<TensorSummary>& tensors) {
  const bool tied = std::none_of(tensors.begin(), tensors.end(), [](const auto& t) { return t.name == kHead; });
  uint64_t bytes = 0;
  for (const TensorSummary& t : tensors) {
    const bool one_row = t.name == kEmbedding && !tied && t.shape.size() > 1;
    bytes += one_row ? t.bytes / (elements_of(t.shape) / t.shape[0]) : t.bytes;
  }
  return bytes;
}

std::vector<TensorSummary> tensors_of(const TensorSource& source) {
  std::vector<TensorSummary> tensors;
  for (const TensorInfo& t : source.tensors())
    tensors.push_back({t.name, t.shape, std::string(traits(t.format).name), true, t.bytes});
  return tensors;
}

void add_totals(ModelSummary& s) {
  for (const TensorSummary& t : s.tensors) {
    auto it = std::find_if(s.formats.begin(), s.formats.end(), [&](const auto& f) { return f.format == t.format; });
    if (it == s.formats.end()) it = s.formats.insert(it, {t.format, t.supported, 0, 0, 0});
    const uint64_t elements = elements_of(t.shape);
    it->tensors += 1;
    it->elements += elements;
    it->bytes += t.bytes;
    s.parameters += elements;
    s.weight_bytes += t.bytes;
  }
  s.bytes_per_token = bytes_per_token(s.tensors);
}

}  // namespace

ModelSummary summarize(const GgufFile& file, const std::string& name) {
  ModelSummary s;
  s.name = name;
  s.parts = file.parts();
  s.metadata = file.metadata();
  const auto marker = s.metadata.find("stet.synthetic");
  if (marker != s.metadata.end()) {
    const bool* value = std::get_if<bool>(&marker->second.value);
    s.synthetic = value == nullptr || *value;
  }
  for (const GgufTensor& t : file.declared_tensors())
    s.tensors.push_back({t.name, t.shape, ggml_type_name(t.ggml_type), t.format.has_value(), t.bytes});
  add_totals(s);
  return s;
}

ModelSummary summarize(const TensorSource& source, const std::string& name) {
  if (const auto* file = dynamic_cast<const GgufFile*>(&source)) return summarize(*file, name);
  ModelSummary s;
  s.name = name;
  s.synthetic = source.synthetic();
  s.metadata = source.metadata();
  s.tensors = tensors_of(source);
  add_totals(s);
  return s;
}

uint64_t weight_bytes_per_token(const TensorSource& source) { return bytes_per_token(tensors_of(source)); }

}  // namespace stet
