// The llama family as transformers saves it (LlamaForCausalLM).
//
// transformers rotates pairs that are half a head apart, GGUF files pairs of neighbours: rows of q_proj and k_proj
// change places.
#include <algorithm>
#include <cmath>

#include "base/dmath.h"
#include "base/error.h"
#include "base/visible_text.h"
#include "weights/hf/dialect.h"

namespace stet {
namespace {

constexpr HfRename kLayerTensors[] = {
    {"input_layernorm.weight", "attn_norm.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"},
    {"self_attn.k_proj.weight", "attn_k.weight"},
    {"self_attn.v_proj.weight", "attn_v.weight"},
    {"self_attn.o_proj.weight", "attn_output.weight"},
    {"self_attn.rotary_emb.inv_freq", ""},  // old checkpoints store what the configuration says
    {"post_attention_layernorm.weight", "ffn_norm.weight"},
    {"mlp.gate_proj.weight", "ffn_gate.weight"},
    {"mlp.up_proj.weight", "ffn_up.weight"},
    {"mlp.down_proj.weight", "ffn_down.weight"},
};
constexpr std::string_view kLayers = "model.layers.";

struct Geometry {
  uint32_t heads = 0, kv_heads = 0, head_dim = 0;
  bool tied = false;
};

std::optional<HfName> translate(const std::string& name, const Geometry& g) {
  if (name == "model.embed_tokens.weight") return HfName{"token_embd.weight"};
  if (name == "model.norm.weight") return HfName{"output_norm.weight"};
  if (name == "lm_head.weight")
    return HfName{g.tied ? "" : "output.weight"};  // tied: the embedding stands in its place
  if (!name.starts_with(kLayers)) return std::nullopt;
  const auto layer = hf_split_index(std::string_view(name).substr(kLayers.size()));
  const HfRename* found = layer ? hf_find(kLayerTensors, layer->second) : nullptr;
  if (found == nullptr) return std::nullopt;
  if (found->ours.empty()) return HfName{};
  const uint32_t rotated = found->ours == "attn_q.weight" ? g.heads : found->ours == "attn_k.weight" ? g.kv_heads : 0;
  return HfName{fmt::format("blk.{}.{}", layer->first, found->ours), rotated};
}

// The divisors of llama3 scaling: 1 for short wavelengths, `factor` for long ones, a blend between (Llama 3.1's model
// card).
std::vector<float> llama3_divisors(StrictObject& rope, double theta, uint32_t head_dim) {
  constexpr double kPi = 3.14159265358979323846;
  const double factor = rope.number("factor", 1, 1e6), low = rope.number("low_freq_factor", 1e-3, 1e6),
               high = rope.number("high_freq_factor", 1e-3, 1e6),
               original = rope.number("original_max_position_embeddings", 1, 1e9);
  if (!(high > low))
    fail(Code::kInput, "{}: high_freq_factor {} is not above low_freq_factor {}", rope.what(), high, low);
  std::vector<float> divisors;
  for (uint32_t i = 0; i < head_dim / 2; ++i) {
    const double wavelength = 2 * kPi * pow64(theta, 2.0 * i / head_dim);
    const double smooth = std::clamp((original / wavelength - low) / (high - low), 0.0, 1.0);
    divisors.push_back(static_cast<float>(1.0 / ((1.0 - smooth) / factor + smooth)));
  }
  return divisors;
}

void read_yarn(StrictObject& rope, HfDialect& d) {
  const auto put = [&](std::string_view theirs, std::string_view ours) {
    if (hf_given(rope, theirs))
      d.metadata[fmt::format("llama.rope.scaling.{}", ours)] = {rope.number(theirs, 1e-3, 1e9)};
  };
  d.metadata["llama.rope.scaling.type"] = {std::string("yarn")};
  d.metadata["llama.rope.scaling.factor"] = {rope.number("factor", 1e-3, 1e6)};
  put("original_max_position_embeddings", "original_context_length");
  put("attention_factor", "yarn_attn_factor");
  put("beta_fast", "yarn_beta_fast");
  put("beta_slow", "yarn_beta_slow");
  hf_require(rope, "truncate", true);
}

void read_rope(StrictObject& config, uint32_t head_dim, HfDialect& d) {
  // transformers 5 writes one object, older versions rope_theta and rope_scaling.
  const bool one = hf_given(config, "rope_parameters"), older = hf_given(config, "rope_scaling");
  const Json none = Json::object();
  StrictObject rope(one     ? config.any("rope_parameters")
                    : older ? config.any("rope_scaling")
                            : none,
                    config.what() + ": RoPE");
  if (one && older) fail(Code::kInput, "{}: has both rope_parameters and rope_scaling", config.what());
  StrictObject& where = one && hf_given(rope, "rope_theta") ? rope : config;
  const double theta = hf_given(where, "rope_theta") ? where.number("rope_theta", 1, 1e12) : 10000.0;
  if (hf_given(config, "rope_theta")) config.any("rope_theta");
  d.metadata["llama.rope.freq_base"] = {theta};
  std::string type = "default";
  for (const char* key : {"type", "rope_type"})
    if (hf_given(rope, key)) type = rope.text(key);
  if (type == "linear") {
    d.metadata["llama.rope.scaling.type"] = {type};
    d.metadata["llama.rope.scaling.factor"] = {rope.number("factor", 1e-3, 1e6)};
  } else if (type == "yarn") {
    read_yarn(rope, d);
  } else if (type == "llama3") {
    d.computed["rope_freqs.weight"] = llama3_divisors(rope, theta, head_dim);
  } else if (type != "default") {
    fail(Code::kUnsupported, "{}: RoPE of type '{}' is not supported; stet knows default, linear, llama3 and yarn",
         config.what(), shown_name(type));
  }
  hf_require(rope, "partial_rotary_factor", 1.0);
  if (const std::string unknown = rope.not_asked_for(); !unknown.empty())
    fail(Code::kUnsupported, "{}: sets {}, which stet does not know for RoPE of type {}", rope.what(),
         shown_name(unknown), type);
}

Geometry read_geometry(StrictObject& config, HfDialect& d) {
  const auto put = [&](std::string_view key, uint64_t value) { d.metadata[fmt::format("llama.{}", key)] = {value}; };
  Geometry g;
  const uint32_t hidden = hf_count(config, "hidden_size");
  g.heads = hf_count(config, "num_attention_heads");
  g.kv_heads = hf_given(config, "num_key_value_heads") ? hf_count(config, "num_key_value_heads") : g.heads;
  g.head_dim = hf_given(config, "head_dim") ? hf_count(config, "head_dim") : hidden / g.heads;
  g.tied = hf_given(config, "tie_word_embeddings") && config.flag("tie_word_embeddings");
  put("vocab_size", hf_count(config, "vocab_size"));
  put("embedding_length", hidden);
  put("feed_forward_length", hf_count(config, "intermediate_size"));
  put("block_count", hf_count(config, "num_hidden_layers"));
  put("context_length", hf_count(config, "max_position_embeddings"));
  put("attention.head_count", g.heads);
  put("attention.head_count_kv", g.kv_heads);
  put("attention.key_length", g.head_dim);
  put("attention.value_length", g.head_dim);
  d.metadata["llama.attention.layer_norm_rms_epsilon"] = {config.number("rms_norm_eps", 0, 1)};
  return g;
}

}  // namespace

HfDialect read_hf_llama(StrictObject& config) {
  HfDialect d;
  d.metadata["general.architecture"] = {std::string("llama")};
  const Geometry g = read_geometry(config, d);
  hf_require(config, "hidden_act", "silu");
  for (const char* key : {"attention_bias", "mlp_bias", "rope_interleaved"}) hf_require(config, key, false);
  hf_require(config, "partial_rotary_factor", 1.0);
  read_rope(config, g.head_dim, d);
  d.translate = [g](const std::string& name) { return translate(name, g); };
  // Without a head a GGUF file means that the embedding is the head.
  if (!g.tied) d.required = {"lm_head.weight"};
  return d;
}

}  // namespace stet
