#include "weights/synth.h"

#include <array>
#include <charconv>

#include "base/error.h"
#include "weights/synth_deepseek_v4.h"
#include "weights/synth_metadata.h"

namespace stet {
namespace {

// Part of every identity: raise it with any change of what a seed generates.
constexpr int kGeneratorVersion = 1;
constexpr uint64_t kDefaultSeed = 1;

constexpr SynthGeometry kGeometries[] = {
    {"llama-1b", 16, 2048, 32, 8, 64, 8192, 128256, true, 500000, 131072},
    {"llama-8b", 32, 4096, 32, 8, 128, 14336, 128256, false, 500000, 131072},
    {"smollm-135m", 30, 576, 9, 3, 64, 1536, 49152, true, 100000, 8192},
    {"tiny", 2, 64, 4, 2, 16, 160, 320, true, 10000, 512},
    {"tiny-gqa", 2, 96, 6, 2, 32, 224, 330, false, 10000, 512},     // rows no multiple of 16, K no multiple of 128
    {"tiny-wide", 3, 192, 5, 1, 64, 352, 271, false, 10000, 1024},  // 5 query heads on one, query width unlike hidden
    {"tiny-256", 2, 256, 4, 2, 64, 512, 320, true, 10000, 512},     // whole blocks of 256
};

std::string list_geometries() {
  std::string text;
  for (const SynthGeometry& g : kGeometries) text += (text.empty() ? "" : ", ") + std::string(g.name);
  return text;
}

std::string list_formats() {
  std::string text;
  for (const FormatTraits& t : all_formats()) text += (text.empty() ? "" : ", ") + std::string(t.name);
  return text;
}

[[noreturn]] void fail_on_name(std::string_view name) {
  fail(Code::kUsage,
       "{}: synthetic models are named synth:GEOMETRY:FORMAT or synth:GEOMETRY:FORMAT:SEED, with geometries {} and "
       "formats {}; or synth:GEOMETRY, synth:GEOMETRY:ROUTER or synth:GEOMETRY:ROUTER:SEED, with geometries {} and "
       "routers uniform and skewed",
       name, list_geometries(), list_formats(), SynthDeepseekV4::list_geometries());
}

const SynthGeometry& find_geometry(std::string_view model, std::string_view name) {
  for (const SynthGeometry& g : kGeometries)
    if (g.name == name) return g;
  fail(Code::kUsage, "{}: no synthetic geometry '{}'; there are {}, {}", model, name, list_geometries(),
       SynthDeepseekV4::list_geometries());
}

Format fitting_format(Format wanted, uint64_t k) {
  for (const Format f : {wanted, Format::q8_0})
    if (k % traits(f).block_elements == 0) return f;
  return Format::f16;
}

}  // namespace

std::span<const SynthGeometry> synth_geometries() { return kGeometries; }

SynthName split_synth_name(std::string_view name) {
  std::vector<std::string_view> parts;
  for (std::string_view rest = name; parts.size() < 5;) {
    const size_t colon = rest.find(':');
    parts.push_back(rest.substr(0, colon));
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (parts.size() < 2 || parts.size() > 4 || parts[0] != "synth") fail_on_name(name);
  SynthName split{parts[1], parts.size() > 2 ? parts[2] : "", kDefaultSeed};
  if (parts.size() < 4) return split;
  const char* end = parts[3].data() + parts[3].size();
  const auto [stop, error] = std::from_chars(parts[3].data(), end, split.seed);
  if (error != std::errc() || stop != end)
    fail(Code::kUsage, "{}: the seed '{}' is not a number from 0 to 2^64 - 1", name, parts[3]);
  return split;
}

std::unique_ptr<TensorSource> open_synthetic(std::string_view name, bool drafts) {
  if (SynthDeepseekV4::is_name(name)) return SynthDeepseekV4::create(name, drafts);
  return SynthSource::create(name);
}

std::unique_ptr<SynthSource> SynthSource::create(std::string_view name) {
  const SynthName parts = split_synth_name(name);
  if (parts.variant.empty()) fail_on_name(name);
  const SynthGeometry& geometry = find_geometry(name, parts.geometry);
  const std::optional<Format> format = format_from_name(parts.variant);
  if (!format) fail(Code::kUsage, "{}: no format '{}'; there are {}", name, parts.variant, list_formats());
  return std::unique_ptr<SynthSource>(new SynthSource(geometry, *format, parts.seed));
}

SynthSource::SynthSource(const SynthGeometry& geometry, Format format, uint64_t seed)
    : SynthTensors(synth_metadata(geometry, format), seed), geometry_(geometry), format_(format) {
  add_tensors();
}

void SynthSource::add_fitting(const std::string& name, uint64_t k, uint64_t n, Format wanted) {
  add_matrix(name, k, n, fitting_format(wanted, k));
}

void SynthSource::add_tensors() {
  const SynthGeometry& g = geometry_;
  const Format outer = traits(format_).integer_block ? Format::q8_0 : format_;
  const uint64_t q = uint64_t{g.heads} * g.head_dim, kv = uint64_t{g.kv_heads} * g.head_dim;
  add_fitting("token_embd.weight", g.hidden, g.vocab, outer);
  for (uint32_t layer = 0; layer < g.layers; ++layer) {
    const std::string block = fmt::format("blk.{}.", layer);
    add_vector(block + "attn_norm.weight", g.hidden);
    add_fitting(block + "attn_q.weight", g.hidden, q, format_);
    add_fitting(block + "attn_k.weight", g.hidden, kv, format_);
    add_fitting(block + "attn_v.weight", g.hidden, kv, format_);
    add_fitting(block + "attn_output.weight", q, g.hidden, format_);
    add_vector(block + "ffn_norm.weight", g.hidden);
    add_fitting(block + "ffn_gate.weight", g.hidden, g.ffn, format_);
    add_fitting(block + "ffn_up.weight", g.hidden, g.ffn, format_);
    add_fitting(block + "ffn_down.weight", g.ffn, g.hidden, format_);
  }
  add_vector("output_norm.weight", g.hidden);
  if (!g.tied) add_fitting("output.weight", g.hidden, g.vocab, outer);
}

std::string SynthSource::identity() const {
  const SynthGeometry& g = geometry_;
  return fmt::format(
      "synth:{}:{}:{} generator {} layers {} hidden {} heads {} kv {} of {} ffn {} vocab {} tied {} rope {} context {}",
      g.name, traits(format_).name, seed_, kGeneratorVersion, g.layers, g.hidden, g.heads, g.kv_heads, g.head_dim,
      g.ffn, g.vocab, g.tied, g.rope_base, g.context);
}

}  // namespace stet
