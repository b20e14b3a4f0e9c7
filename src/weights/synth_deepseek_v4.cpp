#include "weights/synth_deepseek_v4.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "weights/synth.h"
#include "weights/synth_metadata.h"

namespace stet {
namespace {

// Part of every identity: raise it with any change of what a seed generates.
constexpr int kDeepseekGenerator = 1;
constexpr uint32_t kStreams = 4, kRopeDim = 64, kFineRatio = 4, kCoarseRatio = 128, kDsparkStages = 3;
constexpr std::string_view kTable = "ffn_experts_of_token.weight";
constexpr float kRouterSpread = 0.6f, kTableSpread = 0.37f;

constexpr DeepseekV4Geometry flash(std::string_view name, std::string_view draft) {
  return {name, 43, 3,   129280, 1048576, 4096, 64,   512,   1024,  1024, 8,
          128,  64, 128, 512,    160,     6,    2048, 65536, draft, 256};
}
constexpr DeepseekV4Geometry mini(std::string_view name, std::string_view draft) {
  return {name, 6, 2, 512, 8192, 256, 4, 128, 128, 128, 2, 32, 4, 128, 16, 16, 4, 128, 512, draft, 64};
}
constexpr DeepseekV4Geometry kDeepseekGeometries[] = {
    flash("deepseek-v4-flash-k160", ""),
    flash("deepseek-v4-flash-k160-mtp", "mtp"),
    flash("deepseek-v4-flash-k160-dspark", "dspark"),
    mini("deepseek-v4-mini", ""),
    mini("deepseek-v4-mini-mtp", "mtp"),
    mini("deepseek-v4-mini-dspark", "dspark"),
};

// Layers 0 and 1 have no entries; then fine and coarse ones take turns.
uint32_t ratio_of(uint32_t layer) { return layer < 2 ? 0 : layer % 2 == 0 ? kFineRatio : kCoarseRatio; }

std::string block_name(uint32_t layer) { return fmt::format("blk.{}.", layer); }

MetaValue integers(const std::vector<uint32_t>& values) {
  auto list = std::make_shared<MetaArray>();
  for (const uint32_t v : values) list->emplace_back().value.emplace<uint64_t>(v);
  return {std::shared_ptr<const MetaArray>(std::move(list))};
}

class Describe {
 public:
  explicit Describe(Metadata& metadata) : m_(metadata) {}
  void count(std::string_view key, uint64_t value) { m_[full(key)] = {value}; }
  void number(std::string_view key, double value) { m_[full(key)] = {value}; }
  void text(std::string_view key, std::string value) { m_[full(key)] = {std::move(value)}; }
  void list(std::string_view key, const std::vector<uint32_t>& values) { m_[full(key)] = integers(values); }

 private:
  static std::string full(std::string_view key) { return fmt::format("deepseek_v4.{}", key); }
  Metadata& m_;
};

void describe_attention(const DeepseekV4Geometry& g, Describe& d) {
  d.count("attention.head_count", g.heads);
  d.count("attention.key_length", g.head_dim);
  d.count("attention.q_lora_rank", g.q_rank);
  d.count("attention.output_lora_rank", g.o_rank);
  d.count("attention.output_group_count", g.o_groups);
  d.count("attention.sliding_window", g.window);
  d.count("attention.indexer.head_count", g.index_heads);
  d.count("attention.indexer.key_length", g.index_dim);
  d.count("attention.indexer.top_k", g.index_top);
  d.number("attention.layer_norm_rms_epsilon", 1e-6);
  std::vector<uint32_t> ratios;
  for (uint32_t l = 0; l < g.layers; ++l) ratios.push_back(ratio_of(l));
  d.list("attention.compress_ratios", ratios);
  d.count("rope.dimension_count", kRopeDim);
  d.number("rope.freq_base", 10000);
  d.number("compress.rope.freq_base", 160000);
  d.text("compress.rope.scaling.type", "yarn");
  d.number("compress.rope.scaling.factor", 16);
  d.number("compress.rope.scaling.original_context_length", g.rope_original);
  d.number("compress.rope.scaling.yarn_attn_factor", 1);
}

void describe_draft(const DeepseekV4Geometry& g, Describe& d) {
  if (g.draft != "dspark") return;
  d.count("dspark.block_size", 5);
  d.count("dspark.markov_rank", g.markov_rank);
  d.count("dspark.noise_token_id", g.vocab - 1);
  d.list("dspark.target_layers", {g.layers - 3, g.layers - 2, g.layers - 1});
}

Metadata describe(const DeepseekV4Geometry& g, std::string_view router) {
  Metadata m;
  m["general.architecture"] = {std::string("deepseek_v4")};
  m["general.name"] = {fmt::format("synthetic {} {}", g.name, router)};
  m["stet.synthetic"] = {true};
  Describe d(m);
  d.text("activations", "checkpoint");
  d.count("vocab_size", g.vocab);
  d.count("block_count", g.layers);
  d.count("embedding_length", g.hidden);
  d.count("context_length", g.context);
  describe_attention(g, d);
  d.count("expert_count", g.experts);
  d.count("expert_used_count", g.chosen);
  d.count("expert_feed_forward_length", g.ffn);
  d.count("expert_hash_layers", g.hash_layers);
  d.number("expert_weights_scale", 1.5);
  d.number("swiglu_limit", 10);
  d.count("hyper_connection.count", kStreams);
  d.count("hyper_connection.sinkhorn_iterations", 20);
  d.number("hyper_connection.epsilon", 1e-6);
  describe_draft(g, d);
  add_synth_tokenizer(m, g.vocab);
  return m;
}

// A number in (-1, 1), even, of what two words of a key's stream stand for.
float even(uint64_t key, uint64_t i) {
  const uint64_t mixed = xxh3(&i, sizeof i, key);
  return static_cast<float>(static_cast<int32_t>(mixed >> 32)) * 0x1p-31f;
}

}  // namespace

bool SynthDeepseekV4::is_name(std::string_view name) { return name.starts_with("synth:deepseek-v4-"); }

std::string SynthDeepseekV4::list_geometries() {
  std::string text;
  for (const DeepseekV4Geometry& g : kDeepseekGeometries) text += (text.empty() ? "" : ", ") + std::string(g.name);
  return text;
}

std::unique_ptr<SynthDeepseekV4> SynthDeepseekV4::create(std::string_view name, bool drafts) {
  const SynthName parts = split_synth_name(name);
  const auto geometry = std::ranges::find(kDeepseekGeometries, parts.geometry, &DeepseekV4Geometry::name);
  if (geometry == std::end(kDeepseekGeometries))
    fail(Code::kUsage, "{}: no synthetic geometry '{}'; of this family there are {}", name, parts.geometry,
         list_geometries());
  const std::string_view router = parts.variant.empty() ? "uniform" : parts.variant;
  if (router != "uniform" && router != "skewed")
    fail(Code::kUsage, "{}: no router '{}'; there are uniform and skewed", name, router);
  return std::unique_ptr<SynthDeepseekV4>(new SynthDeepseekV4(*geometry, router == "skewed", parts.seed, drafts));
}

SynthDeepseekV4::SynthDeepseekV4(const DeepseekV4Geometry& geometry, bool skewed, uint64_t seed, bool drafts)
    : SynthTensors(describe(geometry, skewed ? "skewed" : "uniform"), seed),
      geometry_(geometry),
      skewed_(skewed),
      drafts_(drafts && !geometry.draft.empty()) {
  const DeepseekV4Geometry& g = geometry_;
  add_matrix("token_embd.weight", g.hidden, g.vocab, Format::bf16);
  for (uint32_t l = 0; l < g.layers; ++l) add_block(block_name(l), ratio_of(l), l < g.hash_layers);
  add_hyper("output_hc", kStreams, 1);
  add_vector("output_norm.weight", g.hidden);
  add_matrix("output.weight", g.hidden, g.vocab, Format::bf16);
  if (drafts_) add_draft();
}

void SynthDeepseekV4::add_hyper(const std::string& prefix, uint64_t outputs, uint64_t scales) {
  add_matrix(prefix + "_fn.weight", uint64_t{geometry_.hidden} * kStreams, outputs, Format::f32);
  add_vector(prefix + "_base", outputs, 0.0f, 0.5f);
  add_vector(prefix + "_scale", scales);
}

void SynthDeepseekV4::add_pool(const std::string& prefix, uint64_t size, uint32_t ratio) {
  const uint64_t width = ratio == kFineRatio ? 2 * size : size;
  add_matrix(prefix + "_kv.weight", geometry_.hidden, width, Format::bf16);
  add_matrix(prefix + "_gate.weight", geometry_.hidden, width, Format::bf16);
  add(prefix + "_position.weight", {width, ratio}, Format::f32, 0.0f, 0.5f);
  add_vector(prefix + "_norm.weight", size);
}

void SynthDeepseekV4::add_attention(const std::string& block, uint32_t ratio) {
  const DeepseekV4Geometry& g = geometry_;
  const uint64_t q = uint64_t{g.heads} * g.head_dim, low = uint64_t{g.o_groups} * g.o_rank;
  add_vector(block + "attn_norm.weight", g.hidden);
  add_matrix(block + "attn_q_a.weight", g.hidden, g.q_rank, Format::e4m3);
  add_vector(block + "attn_q_a_norm.weight", g.q_rank);
  add_matrix(block + "attn_q_b.weight", g.q_rank, q, Format::e4m3);
  add_matrix(block + "attn_kv.weight", g.hidden, g.head_dim, Format::e4m3);
  add_vector(block + "attn_kv_norm.weight", g.head_dim);
  add_vector(block + "attn_sinks", g.heads, 0.0f, 1.0f);
  add_matrix(block + "attn_output_a.weight", q / g.o_groups, low, Format::e4m3);
  add_matrix(block + "attn_output_b.weight", low, g.hidden, Format::e4m3);
  if (ratio != 0) add_pool(block + "compressor", g.head_dim, ratio);
  if (ratio != kFineRatio) return;
  add_pool(block + "indexer", g.index_dim, ratio);
  add_matrix(block + "indexer_q_b.weight", g.q_rank, uint64_t{g.index_heads} * g.index_dim, Format::e4m3);
  add_matrix(block + "indexer_heads.weight", g.hidden, g.index_heads, Format::bf16);
}

void SynthDeepseekV4::add_experts(const std::string& block, bool hashed) {
  const DeepseekV4Geometry& g = geometry_;
  add_vector(block + "ffn_norm.weight", g.hidden);
  add_matrix(block + "ffn_router.weight", g.hidden, g.experts, Format::bf16);
  if (hashed) {
    add_made({block + std::string(kTable), {g.chosen, g.vocab}, Format::f32, 4ull * g.chosen * g.vocab});
  } else {
    add_vector(block + "ffn_router_bias", g.experts, 0.0f, skewed_ ? kRouterSpread : 0.0f);
  }
  const auto add_expert = [&](const std::string& prefix, Format format) {
    add_matrix(prefix + "gate.weight", g.hidden, g.ffn, format);
    add_matrix(prefix + "up.weight", g.hidden, g.ffn, format);
    add_matrix(prefix + "down.weight", g.ffn, g.hidden, format);
  };
  add_expert(block + "ffn_shared_", Format::e4m3);
  for (uint32_t e = 0; e < g.experts; ++e) add_expert(fmt::format("{}expert.{}.", block, e), Format::mxfp4);
}

void SynthDeepseekV4::add_block(const std::string& block, uint32_t ratio, bool hashed) {
  add_hyper(block + "attn_hc", kStreams * (2 + kStreams), 3);
  add_attention(block, ratio);
  add_hyper(block + "ffn_hc", kStreams * (2 + kStreams), 3);
  add_experts(block, hashed);
}

void SynthDeepseekV4::add_draft() {
  const DeepseekV4Geometry& g = geometry_;
  const bool mtp = g.draft == "mtp";
  const uint32_t stages = mtp ? 1 : kDsparkStages;
  for (uint32_t i = 0; i < stages; ++i) add_block(fmt::format("mtp.{}.", i), 0, false);
  const std::string last = fmt::format("mtp.{}.", stages - 1);
  add_vector(last + "output_norm.weight", g.hidden);
  add_hyper(last + "output_hc", kStreams, 1);
  if (mtp) {
    for (const char* side : {"mtp.0.e", "mtp.0.h"}) {
      add_matrix(std::string(side) + "_proj.weight", g.hidden, g.hidden, Format::e4m3);
      add_vector(std::string(side) + "_norm.weight", g.hidden);
    }
    return;
  }
  add_matrix("mtp.0.main_proj.weight", 3ull * g.hidden, g.hidden, Format::e4m3);
  add_vector("mtp.0.main_norm.weight", g.hidden);
  add_matrix(last + "markov_embd.weight", g.markov_rank, g.vocab, Format::bf16);
  add_matrix(last + "markov_output.weight", g.markov_rank, g.vocab, Format::bf16);
  add_matrix(last + "confidence.weight", g.hidden + g.markov_rank, 1, Format::bf16);
}

void SynthDeepseekV4::read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const {
  if (tensor.name.ends_with(kTable)) return read_table(tensor, offset, out);
  SynthTensors::read(tensor, offset, out);
}

void SynthDeepseekV4::read_table(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const {
  STET_CHECK(offset <= tensor.bytes && out.size() <= tensor.bytes - offset);
  const uint64_t key = xxh3(tensor.name.data(), tensor.name.size(), seed_), row_bytes = 4ull * geometry_.chosen;
  std::vector<float> ids(geometry_.chosen);
  while (!out.empty()) {
    const uint64_t token = offset / row_bytes, skip = offset % row_bytes;
    const size_t n = std::min<size_t>(out.size(), row_bytes - skip);
    chosen_of_token(key, token, ids.data());
    std::memcpy(out.data(), reinterpret_cast<const std::byte*>(ids.data()) + skip, n);
    out = out.subspan(n);
    offset += n;
  }
}

// The experts with the largest even draws, popularity added.
void SynthDeepseekV4::chosen_of_token(uint64_t key, uint64_t token, float* ids) const {
  std::vector<std::pair<float, uint32_t>> draws(geometry_.experts);
  const float width = skewed_ ? kTableSpread * 1.7320508f : 0.0f;
  for (uint32_t e = 0; e < geometry_.experts; ++e)
    draws[e] = {0.5f * even(key, token * geometry_.experts + e) + width * even(~key, e), e};
  std::partial_sort(draws.begin(), draws.begin() + geometry_.chosen, draws.end(), std::greater<>());
  for (uint32_t i = 0; i < geometry_.chosen; ++i) ids[i] = static_cast<float>(draws[i].second);
}

std::string SynthDeepseekV4::identity() const {
  const DeepseekV4Geometry& g = geometry_;
  return fmt::format(
      "synth:{}:{}:{} generator {} blocks {} of {} hidden {} heads {} of {} ranks {} {} groups {} window {} index {} "
      "{} {} "
      "experts {} of {} ffn {} vocab {} draft {}",
      g.name, skewed_ ? "skewed" : "uniform", seed_, kDeepseekGenerator, g.hash_layers, g.layers, g.hidden, g.heads,
      g.head_dim, g.q_rank, g.o_rank, g.o_groups, g.window, g.index_heads, g.index_dim, g.index_top, g.chosen,
      g.experts, g.ffn, g.vocab, drafts_ ? g.draft : "none");
}

}  // namespace stet
