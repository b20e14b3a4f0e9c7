#include "weights/summary.h"

#include <algorithm>

namespace stet {
namespace {

constexpr std::string_view kEmbedding = "token_embd.weight";
constexpr std::string_view kHead = "output.weight";
constexpr std::string_view kExpertsOfToken = ".ffn_experts_of_token.weight";

uint64_t elements_of(const std::vector<uint64_t>& shape) {
  uint64_t n = 1;
  for (const uint64_t d : shape) n *= d;
  return n;
}

// A count of the architecture's namespace; 0: it is not there.
uint64_t count_of(const Metadata& metadata, std::string_view key) {
  const auto name = metadata.find("general.architecture");
  if (name == metadata.end()) return 0;
  const auto* architecture = std::get_if<std::string>(&name->second.value);
  const auto it = architecture == nullptr ? metadata.end() : metadata.find(*architecture + "." + std::string(key));
  const uint64_t* count = it == metadata.end() ? nullptr : std::get_if<uint64_t>(&it->second.value);
  return count == nullptr ? 0 : *count;
}

bool is_of_experts(std::string_view name) {
  return name.find(".expert.") != name.npos || name.find("_exps.") != name.npos;
}

uint64_t bytes_per_token(const std::vector<DeclaredTensor>& tensors, const Metadata& metadata) {
  const bool tied = std::none_of(tensors.begin(), tensors.end(), [](const auto& t) { return t.name == kHead; });
  uint64_t bytes = 0, of_experts = 0;
  for (const DeclaredTensor& t : tensors) {
    const bool table = (t.name == kEmbedding && !tied) || t.name.ends_with(kExpertsOfToken);
    (is_of_experts(t.name) ? of_experts : bytes) +=
        table && t.shape.size() > 1 ? t.bytes / (elements_of(t.shape) / t.shape[0]) : t.bytes;
  }
  const uint64_t experts = count_of(metadata, "expert_count"), used = count_of(metadata, "expert_used_count");
  const bool routed = experts > 0 && used > 0 && used <= experts;
  return bytes + (routed ? of_experts / experts * used : of_experts);
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
  s.bytes_per_token = bytes_per_token(s.tensors, s.metadata);
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

uint64_t weight_bytes_per_token(const TensorSource& source) {
  return bytes_per_token(source.declared(), source.metadata());
}

}  // namespace stet
