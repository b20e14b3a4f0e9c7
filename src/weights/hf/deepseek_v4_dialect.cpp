// DeepSeek V4 under the names of its published checkpoints (config.json and inference/model.py of
// deepseek-ai/DeepSeek-V4-Flash).
//
// Blocks of drafts (mtp.*) are left out: they propose, and cannot change the answer. Pairs of a rotation are neighbours
// there already.
#include "base/error.h"
#include "weights/hf/dialect.h"

namespace stet {
namespace {

// Numbers of the configuration under the keys that the model reads.
constexpr HfRename kNumbers[] = {
    {"vocab_size", "vocab_size"},
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
    {"max_position_embeddings", "context_length"},
    {"num_attention_heads", "attention.head_count"},
    {"head_dim", "attention.key_length"},
    {"qk_rope_head_dim", "rope.dimension_count"},
    {"q_lora_rank", "attention.q_lora_rank"},
    {"o_lora_rank", "attention.output_lora_rank"},
    {"o_groups", "attention.output_group_count"},
    {"sliding_window", "attention.sliding_window"},
    {"index_n_heads", "attention.indexer.head_count"},
    {"index_head_dim", "attention.indexer.key_length"},
    {"index_topk", "attention.indexer.top_k"},
    {"n_routed_experts", "expert_count"},
    {"num_experts_per_tok", "expert_used_count"},
    {"moe_intermediate_size", "expert_feed_forward_length"},
    {"hc_mult", "hyper_connection.count"},
    {"hc_sinkhorn_iters", "hyper_connection.sinkhorn_iterations"},
};

// About drafts, about how experts were chosen before they were stored, or said again by the tensors' own types.
constexpr std::string_view kOfNoConsequence[] = {
    "num_nextn_predict_layers", "dspark_block_size", "dspark_markov_rank", "dspark_noise_token_id",
    "dspark_target_layer_ids",  "reap_pruning",      "expert_dtype",
};

constexpr HfRename kTop[] = {
    {"embed.weight", "token_embd.weight"}, {"head.weight", "output.weight"},   {"norm.weight", "output_norm.weight"},
    {"hc_head_fn", "output_hc_fn.weight"}, {"hc_head_base", "output_hc_base"}, {"hc_head_scale", "output_hc_scale"},
};
constexpr HfRename kLayer[] = {
    {"attn_norm.weight", "attn_norm.weight"},
    {"ffn_norm.weight", "ffn_norm.weight"},
    {"hc_attn_fn", "attn_hc_fn.weight"},
    {"hc_attn_base", "attn_hc_base"},
    {"hc_attn_scale", "attn_hc_scale"},
    {"hc_ffn_fn", "ffn_hc_fn.weight"},
    {"hc_ffn_base", "ffn_hc_base"},
    {"hc_ffn_scale", "ffn_hc_scale"},
    {"attn.wq_a.weight", "attn_q_a.weight"},
    {"attn.q_norm.weight", "attn_q_a_norm.weight"},
    {"attn.wq_b.weight", "attn_q_b.weight"},
    {"attn.wkv.weight", "attn_kv.weight"},
    {"attn.kv_norm.weight", "attn_kv_norm.weight"},
    {"attn.attn_sink", "attn_sinks"},
    {"attn.wo_a.weight", "attn_output_a.weight"},
    {"attn.wo_b.weight", "attn_output_b.weight"},
    {"attn.compressor.wkv.weight", "compressor_kv.weight"},
    {"attn.compressor.wgate.weight", "compressor_gate.weight"},
    {"attn.compressor.ape", "compressor_position.weight"},
    {"attn.compressor.norm.weight", "compressor_norm.weight"},
    {"attn.indexer.wq_b.weight", "indexer_q_b.weight"},
    {"attn.indexer.weights_proj.weight", "indexer_heads.weight"},
    {"attn.indexer.compressor.wkv.weight", "indexer_kv.weight"},
    {"attn.indexer.compressor.wgate.weight", "indexer_gate.weight"},
    {"attn.indexer.compressor.ape", "indexer_position.weight"},
    {"attn.indexer.compressor.norm.weight", "indexer_norm.weight"},
    {"ffn.gate.weight", "ffn_router.weight"},
    {"ffn.gate.bias", "ffn_router_bias"},
    {"ffn.gate.tid2eid", "ffn_experts_of_token.weight"},
    {"ffn.shared_experts.w1.weight", "ffn_shared_gate.weight"},
    {"ffn.shared_experts.w3.weight", "ffn_shared_up.weight"},
    {"ffn.shared_experts.w2.weight", "ffn_shared_down.weight"},
};
constexpr HfRename kExpert[] = {
    {"w1.weight", "gate.weight"},
    {"w3.weight", "up.weight"},
    {"w2.weight", "down.weight"},
};

std::optional<HfName> translate_layer(std::string_view layer, std::string_view rest) {
  constexpr std::string_view kExperts = "ffn.experts.";
  if (rest.starts_with(kExperts)) {
    const auto expert = hf_split_index(rest.substr(kExperts.size()));
    const HfRename* r = expert ? hf_find(kExpert, expert->second) : nullptr;
    if (r == nullptr) return std::nullopt;
    return HfName{fmt::format("blk.{}.expert.{}.{}", layer, expert->first, r->ours)};
  }
  const HfRename* r = hf_find(kLayer, rest);
  if (r == nullptr) return std::nullopt;
  HfName name{fmt::format("blk.{}.{}", layer, r->ours)};
  name.whole_numbers = rest == "ffn.gate.tid2eid";
  return name;
}

std::optional<HfName> translate_published(const std::string& name) {
  constexpr std::string_view kBlocks = "layers.";
  if (const HfRename* r = hf_find(kTop, name)) return HfName{std::string(r->ours)};
  if (name.starts_with("mtp.")) return HfName{};
  if (!name.starts_with(kBlocks)) return std::nullopt;
  const auto layer = hf_split_index(std::string_view(name).substr(kBlocks.size()));
  return layer ? translate_layer(layer->first, layer->second) : std::nullopt;
}

class ConfigTranslator {
 public:
  ConfigTranslator(StrictObject& config, Metadata& metadata) : config_(config), metadata_(metadata) {}

  void numbers() {
    for (const HfRename& n : kNumbers) put(n.ours, {uint64_t{hf_count(config_, n.theirs)}});
    put("expert_hash_layers", {static_cast<uint64_t>(config_.whole("num_hash_layers", 0, 1 << 30))});
    put("attention.layer_norm_rms_epsilon", {config_.number("rms_norm_eps", 0, 1)});
    put("hyper_connection.epsilon", {config_.number("hc_eps", 0, 1)});
    put("expert_weights_scale", {config_.number("routed_scaling_factor", 0, 1e6)});
    put("swiglu_limit", {config_.number("swiglu_limit", 0, 1e30)});
  }

  // One ratio a layer; those behind belong to the blocks of drafts.
  void ratios() {
    const uint64_t layers = hf_count(config_, "num_hidden_layers");
    const std::vector<int32_t> all = config_.ids("compress_ratios");
    if (all.size() < layers)
      fail(Code::kInput, "{}: compress_ratios has {} entries for {} layers", config_.what(), all.size(), layers);
    auto list = std::make_shared<MetaArray>();
    for (uint64_t l = 0; l < layers; ++l) list->emplace_back().value.emplace<uint64_t>(static_cast<uint64_t>(all[l]));
    put("attention.compress_ratios", {std::shared_ptr<const MetaArray>(std::move(list))});
  }

  // Layers without entries rotate by rope_theta alone, the others by compress_rope_theta and rope_scaling.
  void rope() {
    put("rope.freq_base", {config_.number("rope_theta", 1, 1e12)});
    put("compress.rope.freq_base", {config_.number("compress_rope_theta", 1, 1e12)});
    if (!hf_given(config_, "rope_scaling")) return;
    StrictObject rope(config_.any("rope_scaling"), config_.what() + ": rope_scaling");
    for (const char* key : {"type", "rope_type"}) hf_require(rope, key, "yarn");
    metadata_["deepseek_v4.compress.rope.scaling.type"].value.emplace<std::string>("yarn");
    put("compress.rope.scaling.factor", {rope.number("factor", 1e-3, 1e6)});
    put("compress.rope.scaling.original_context_length", {rope.number("original_max_position_embeddings", 1, 1e9)});
    put("compress.rope.scaling.yarn_beta_fast", {rope.number("beta_fast", 1e-3, 1e6)});
    put("compress.rope.scaling.yarn_beta_slow", {rope.number("beta_slow", 1e-3, 1e6)});
    put("compress.rope.scaling.yarn_attn_factor", {1.0});  // this family does not scale cosines and sines
    if (const std::string unknown = rope.not_asked_for(); !unknown.empty())
      fail(Code::kUnsupported, "{}: sets {}, which stet does not know", rope.what(), unknown);
  }

  void settled() {
    hf_require(config_, "num_key_value_heads", 1);
    hf_require(config_, "n_shared_experts", 1);
    hf_require(config_, "tie_word_embeddings", false);
    hf_require(config_, "attention_bias", false);
    hf_require(config_, "hidden_act", "silu");
    hf_require(config_, "scoring_func", "sqrtsoftplus");
    hf_require(config_, "topk_method", "noaux_tc");
    hf_require(config_, "norm_topk_prob", true);
    for (const std::string_view key : kOfNoConsequence)
      if (config_.has(key)) config_.any(key);
  }

 private:
  void put(std::string_view key, const MetaValue& value) {
    metadata_.insert_or_assign(fmt::format("deepseek_v4.{}", key), value);
  }

  StrictObject& config_;
  Metadata& metadata_;
};

}  // namespace

HfDialect read_hf_deepseek_v4(StrictObject& config) {
  HfDialect d;
  d.metadata["general.architecture"] = {std::string("deepseek_v4")};
  ConfigTranslator translator(config, d.metadata);
  translator.numbers();
  translator.ratios();
  translator.rope();
  translator.settled();
  d.translate = translate_published;
  return d;
}

}  // namespace stet
