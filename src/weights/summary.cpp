#include "weights/summary.h"

#include <algorithm>

namespace stet {
namespace {

constexpr std::string_view kEmbedding = "token_embd.weight";
constexpr std::string_view kHead = "output.weight";

uint64_t elements_of(const std::vector<uint64_t>& shape) {
  uint64_t n = 1;
  for (const uint64_t d : shape) n *= d;
  return n;
}

uint64_t bytes_per_token(const std::vector<DeclaredTensor>& tensors) {
  const bool tied = std::none_of(tensors.begin(), tensors.end(), [](const auto& t) { return t.name == kHead; });
  uint64_t bytes = 0;
  for (const DeclaredTensor& t : tensors) {
    const bool one_row = t.name == kEmbedding && !tied && t.shape.size() > 1;
    bytes += one_row ? t.bytes / (elements_of(t.shape) / t.shape[0]) : t.bytes;
  }
  return bytes;
}

// stet marks the files that it makes up.
bool is_marked_synthetic(const Metadata& metadata) {
  const auto marker = metadata.find("stet.synthetic");
  if (marker == metadata.end()) return false;
  const bool* value = std::get_if<bool>(&marker->second.value);
  return value == nullptr || *value;
}

void add_totals(ModelSummary& s) {
  for (const DeclaredTensor& t : s.tensors) {
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

ModelSummary summarize(const TensorSource& source, const std::string& name) {
  ModelSummary s;
  s.name = name;
  s.metadata = source.metadata();
  s.synthetic = source.synthetic() || is_marked_synthetic(s.metadata);
  s.files = source.files();
  s.tensors = source.declared();
  add_totals(s);
  return s;
}

uint64_t weight_bytes_per_token(const TensorSource& source) { return bytes_per_token(source.declared()); }

}  // namespace stet
