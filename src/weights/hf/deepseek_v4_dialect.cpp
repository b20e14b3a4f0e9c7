// DeepSeek V4 under the names of its published checkpoints (config.json and inference/model.py of
// deepseek-ai/DeepSeek-V4-Flash).
//
// Blocks of drafts (mtp.*) keep that prefix; they propose, and cannot change the answer. Pairs of a rotation are
// neighbours there already. What transformers' save_pretrained writes is read too: its keys for ratios, hashed layers
// and RoPE; FP8 and packed FP4 it keeps as they are published.
#include <algorithm>
#include <cmath>

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

// About drafts, about how experts were chosen before they were stored, or (expert_dtype) of no meaning where nothing is
// quantised.
constexpr std::string_view kOfNoConsequence[] = {
    "num_nextn_predict_layers", "reap_pruning",         "expert_dtype",
    "output_router_logits",     "router_aux_loss_coef", "router_jitter_noise",
};

// Of drafts, where there are any.
constexpr HfRename kDraftNumbers[] = {
    {"dspark_block_size", "dspark.block_size"},
    {"dspark_markov_rank", "dspark.markov_rank"},
    {"dspark_noise_token_id", "dspark.noise_token_id"},
};

constexpr HfRename kTop[] = {
    {"embed.weight", "token_embd.weight"},    {"head.weight", "output.weight"},
    {"norm.weight", "output_norm.weight"},    {"embed_tokens.weight", "token_embd.weight"},
    {"hc_head.hc_fn", "output_hc_fn.weight"}, {"hc_head.hc_base", "output_hc_base"},
    {"hc_head.hc_scale", "output_hc_scale"},  {"hc_head_fn", "output_hc_fn.weight"},
    {"hc_head_base", "output_hc_base"},       {"hc_head_scale", "output_hc_scale"},
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
    {"attn.norm.weight", "attn_kv_norm.weight"},  // transformers 5.24
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

// What blocks of drafts have beside the tensors of a layer.
constexpr HfRename kDraft[] = {
    {"e_proj.weight", "e_proj.weight"},
    {"h_proj.weight", "h_proj.weight"},
    {"enorm.weight", "e_norm.weight"},
    {"hnorm.weight", "h_norm.weight"},
    {"norm.weight", "output_norm.weight"},
    {"hc_head_fn", "output_hc_fn.weight"},
    {"hc_head_base", "output_hc_base"},
    {"hc_head_scale", "output_hc_scale"},
    {"main_proj.weight", "main_proj.weight"},
    {"main_norm.weight", "main_norm.weight"},
    {"markov_head.markov_w1.weight", "markov_embd.weight"},
    {"markov_head.markov_w2.weight", "markov_output.weight"},
    {"confidence_head.proj.weight", "confidence.weight"},
};

// block: "blk.3", "mtp.0".
std::optional<HfName> translate_layer(const std::string& block, std::string_view rest) {
  constexpr std::string_view kExperts = "ffn.experts.";
  if (rest.starts_with(kExperts)) {
    const auto expert = hf_split_index(rest.substr(kExperts.size()));
    const HfRename* r = expert ? hf_find(kExpert, expert->second) : nullptr;
    if (r == nullptr) return std::nullopt;
    HfName name{fmt::format("{}.expert.{}.{}", block, expert->first, r->ours)};
    name.expert = true;
    return name;
  }
  const HfRename* r = hf_find(kLayer, rest);
  if (r == nullptr) return std::nullopt;
  HfName name{fmt::format("{}.{}", block, r->ours)};
  name.whole_numbers = rest == "ffn.gate.tid2eid";
  return name;
}

// A tensor that no draft has keeps its name: whoever asks for the draft is told of it.
HfName translate_draft(std::string_view theirs) {
  HfName name{std::string(theirs)};
  if (const auto stage = hf_split_index(theirs.substr(theirs.find('.') + 1))) {
    const std::string block = fmt::format("mtp.{}", stage->first);
    const auto of_layer = translate_layer(block, stage->second);
    if (of_layer) name = *of_layer;
    if (const HfRename* r = hf_find(kDraft, stage->second)) name.name = fmt::format("{}.{}", block, r->ours);
  }
  name.draft = true;
  return name;
}

// transformers writes the published names behind "model.", but for those of the tables above.
std::optional<HfName> translate_published(std::string_view name) {
  constexpr std::string_view kBlocks = "layers.", kPrefix = "model.";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  if (const HfRename* r = hf_find(kTop, name)) return HfName{std::string(r->ours)};
  if (name.starts_with("mtp.")) return translate_draft(name);
  if (!name.starts_with(kBlocks)) return std::nullopt;
  const auto layer = hf_split_index(name.substr(kBlocks.size()));
  return layer ? translate_layer(fmt::format("blk.{}", layer->first), layer->second) : std::nullopt;
}

class ConfigTranslator {
 public:
  ConfigTranslator(StrictObject& config, Metadata& metadata) : config_(config), metadata_(metadata) {}

  void numbers() {
    for (const HfRename& n : kNumbers) put(n.ours, {uint64_t{hf_count(config_, n.theirs)}});
    put("expert_hash_layers", {hash_layers()});
    put("attention.layer_norm_rms_epsilon", {config_.number("rms_norm_eps", 0, 1)});
    put("hyper_connection.epsilon", {config_.number("hc_eps", 0, 1)});
    put("expert_weights_scale", {config_.number("routed_scaling_factor", 0, 1e6)});
    put("swiglu_limit", {config_.number("swiglu_limit", 0, 1e30)});
  }

  // One ratio a layer; those behind belong to the blocks of drafts.
  void ratios() {
    const bool transformers = !config_.has("compress_ratios") && hf_given(config_, "layer_types");
    const std::vector<int32_t> all = transformers ? ratios_of_transformers() : config_.ids("compress_ratios");
    if (all.size() < layers())
      fail(Code::kInput, "{}: compress_ratios has {} entries for {} layers", config_.what(), all.size(), layers());
    put("attention.compress_ratios", {list_of(std::span(all).first(layers()))});
  }

  // Layers without entries rotate by one base alone, the others by another, and by YaRN where it is set.
  void rope() {
    if (hf_given(config_, "rope_parameters")) return rope_of_transformers();
    put("rope.freq_base", {config_.number("rope_theta", 1, 1e12)});
    put("compress.rope.freq_base", {config_.number("compress_rope_theta", 1, 1e12)});
    if (!hf_given(config_, "rope_scaling")) return;
    StrictObject scaling(config_.any("rope_scaling"), config_.what() + ": rope_scaling");
    for (const char* key : {"type", "rope_type"}) hf_require(scaling, key, "yarn");
    yarn(scaling);
  }

  void drafts() {
    for (const HfRename& n : kDraftNumbers)
      if (hf_given(config_, n.theirs)) put(n.ours, {static_cast<uint64_t>(config_.whole(n.theirs, 0, 1 << 30))});
    constexpr std::string_view kTaps = "dspark_target_layer_ids";
    if (hf_given(config_, kTaps)) put("dspark.target_layers", {list_of(config_.ids(kTaps))});
  }

  void settled() {
    hf_require(config_, "num_key_value_heads", 1);
    hf_require(config_, "n_shared_experts", 1);
    hf_require(config_, "tie_word_embeddings", false);
    for (const char* key : {"attention_bias", "mlp_bias"}) hf_require(config_, key, false);
    hf_require(config_, "hidden_act", "silu");
    hf_require(config_, "scoring_func", "sqrtsoftplus");
    hf_require(config_, "topk_method", "noaux_tc");
    hf_require(config_, "norm_topk_prob", true);
    for (const std::string_view key : kOfNoConsequence)
      if (config_.has(key)) config_.any(key);
  }

 private:
  void yarn(StrictObject& rope) {
    metadata_["deepseek_v4.compress.rope.scaling.type"].value.emplace<std::string>("yarn");
    put("compress.rope.scaling.factor", {rope.number("factor", 1e-3, 1e6)});
    put("compress.rope.scaling.original_context_length", {rope.number("original_max_position_embeddings", 1, 1e9)});
    put("compress.rope.scaling.yarn_beta_fast", {rope.number("beta_fast", 1e-3, 1e6)});
    put("compress.rope.scaling.yarn_beta_slow", {rope.number("beta_slow", 1e-3, 1e6)});
    put("compress.rope.scaling.yarn_attn_factor", {1.0});  // this family does not scale cosines and sines
    hf_require(rope, "attention_factor", 1.0);
    hf_all_known(rope);
  }

  // What transformers writes: {"main": {..}, "compress": {..}}. The older keys beside it hold defaults of no meaning.
  void rope_of_transformers() {
    StrictObject both(config_.any("rope_parameters"), config_.what() + ": rope_parameters");
    StrictObject main(both.any("main"), both.what() + ": main"),
        compress(both.any("compress"), both.what() + ": compress");
    hf_all_known(both);
    const double head = hf_count(config_, "head_dim");
    for (StrictObject* rope : {&main, &compress}) {
      const double turned = rope->number("partial_rotary_factor", 0, 1) * head;
      if (std::abs(turned - hf_count(config_, "qk_rope_head_dim")) > 0.01)
        fail(Code::kUnsupported, "{}: partial_rotary_factor and qk_rope_head_dim disagree", rope->what());
    }
    put("rope.freq_base", {main.number("rope_theta", 1, 1e12)});
    put("compress.rope.freq_base", {compress.number("rope_theta", 1, 1e12)});
    hf_require(main, "rope_type", "default");
    hf_all_known(main);
    if (compress.text("rope_type") != "default") {
      hf_require(compress, "rope_type", "yarn");
      hf_require(compress, "type", "yarn");  // the published key, which it keeps
      yarn(compress);
    }
    hf_all_known(compress);
    for (const char* key : {"rope_theta", "compress_rope_theta", "partial_rotary_factor"}) hf_given(config_, key);
  }

  // The texts of a list, one a layer.
  std::vector<std::string> texts(std::string_view key) {
    std::vector<std::string> all;
    for (const Json& item : config_.any(key)) all.push_back(item.is_string() ? item.get<std::string>() : "");
    if (all.size() < layers())
      fail(Code::kInput, "{}: {} has {} entries for {} layers", config_.what(), key, all.size(), layers());
    all.resize(layers());
    return all;
  }
  uint64_t layers() { return hf_count(config_, "num_hidden_layers"); }

  std::vector<int32_t> ratios_of_transformers() {
    StrictObject rates(config_.any("compress_rates"), config_.what() + ": compress_rates");
    std::vector<int32_t> all;
    for (const std::string& type : texts("layer_types"))
      all.push_back(type == "sliding_attention" ? 0 : static_cast<int32_t>(rates.whole(type, 1, 1 << 20)));
    // The name says that entries overlap, and have an indexer; to src/models their ratio does.
    constexpr std::string_view kFine = "compressed_sparse_attention";
    if (rates.has(kFine)) hf_require(rates, kFine, 4);
    if (rates.has("heavily_compressed_attention") && rates.whole("heavily_compressed_attention", 1, 1 << 20) == 4)
      fail(Code::kUnsupported, "{}: heavily_compressed_attention has the ratio of entries that overlap", rates.what());
    hf_all_known(rates);
    return all;
  }

  // Layers whose experts a table chooses come first.
  uint64_t hash_layers() {
    if (!hf_given(config_, "mlp_layer_types"))
      return static_cast<uint64_t>(config_.whole("num_hash_layers", 0, 1 << 30));
    const std::vector<std::string> types = texts("mlp_layer_types");
    const auto end = std::ranges::find_if(types, [](const std::string& t) { return t != "hash_moe"; });
    if (!std::all_of(end, types.end(), [](const std::string& t) { return t == "moe"; }))
      fail(Code::kUnsupported, "{}: mlp_layer_types is no run of hash_moe before a run of moe", config_.what());
    return static_cast<uint64_t>(end - types.begin());
  }

  static std::shared_ptr<const MetaArray> list_of(std::span<const int32_t> numbers) {
    auto list = std::make_shared<MetaArray>();
    for (const int32_t n : numbers) list->emplace_back().value.emplace<uint64_t>(static_cast<uint64_t>(n));
    return list;
  }

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
  d.metadata["tokenizer.chat_encoding"] = {std::string("deepseek_v4")};  // where there is no chat template
  ConfigTranslator translator(config, d.metadata);
  translator.numbers();
  translator.ratios();
  translator.rope();
  translator.drafts();
  translator.settled();
  d.scaled = true;
  d.translate = translate_published;
  return d;
}

}  // namespace stet
