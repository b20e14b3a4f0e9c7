// The tensors of DeepSeek V4, by the names that src/weights/hf/deepseek_v4_dialect.cpp gives them.
#include <fmt/format.h>

#include "models/deepseek_v4_parts.h"

namespace stet::deepseek_v4 {

const Settings& settings(const ModelDesc& d) { return *static_cast<const Settings*>(d.settings.get()); }

std::string named(uint32_t block, std::string_view tensor) {
  if (block >= kDraftBlock) return fmt::format("mtp.{}.{}", block - kDraftBlock, tensor);
  return fmt::format("blk.{}.{}", block, tensor);
}

void add_hyper_tensors(const ModelDesc& d, const std::string& prefix, uint64_t outputs, uint64_t scales,
                       std::vector<TensorSpec>& t) {
  t.push_back({prefix + "_fn.weight", {uint64_t{d.hidden} * settings(d).streams, outputs}});
  t.push_back({prefix + "_base", {outputs}});
  t.push_back({prefix + "_scale", {scales}});
}

namespace {

void add_pool_tensors(const ModelDesc& d, uint32_t l, const std::string& kind, uint64_t size,
                      std::vector<TensorSpec>& t) {
  const uint64_t width = settings(d).fine(l) ? 2 * size : size;
  t.push_back({named(l, kind + "_kv.weight"), {d.hidden, width}});
  t.push_back({named(l, kind + "_gate.weight"), {d.hidden, width}});
  t.push_back({named(l, kind + "_position.weight"), {width, settings(d).ratios[l]}});
  t.push_back({named(l, kind + "_norm.weight"), {size}});
}

void add_attention_tensors(const ModelDesc& d, uint32_t l, std::vector<TensorSpec>& t) {
  const Settings& s = settings(d);
  const uint64_t q = uint64_t{d.heads} * d.head_dim, low = uint64_t{s.o_groups} * s.o_rank;
  t.push_back({named(l, "attn_norm.weight"), {d.hidden}});
  t.push_back({named(l, "attn_q_a.weight"), {d.hidden, s.q_rank}});
  t.push_back({named(l, "attn_q_a_norm.weight"), {s.q_rank}});
  t.push_back({named(l, "attn_q_b.weight"), {s.q_rank, q}});
  t.push_back({named(l, "attn_kv.weight"), {d.hidden, d.head_dim}});
  t.push_back({named(l, "attn_kv_norm.weight"), {d.head_dim}});
  t.push_back({named(l, "attn_sinks"), {d.heads}});
  t.push_back({named(l, "attn_output_a.weight"), {q / s.o_groups, low}});
  t.push_back({named(l, "attn_output_b.weight"), {low, d.hidden}});
  if (s.ratio(l) != 0) add_pool_tensors(d, l, "compressor", d.head_dim, t);
  if (!s.fine(l)) return;
  add_pool_tensors(d, l, "indexer", s.index_dim, t);
  t.push_back({named(l, "indexer_q_b.weight"), {s.q_rank, uint64_t{s.index_heads} * s.index_dim}});
  t.push_back({named(l, "indexer_heads.weight"), {d.hidden, s.index_heads}});
}

void add_expert_tensors(const ModelDesc& d, uint32_t l, std::vector<TensorSpec>& t) {
  const Settings& s = settings(d);
  t.push_back({named(l, "ffn_norm.weight"), {d.hidden}});
  t.push_back({named(l, "ffn_router.weight"), {d.hidden, s.experts}});
  if (l < s.hash_layers) {
    t.push_back({named(l, "ffn_experts_of_token.weight"), {s.chosen, d.vocab}});
  } else {
    t.push_back({named(l, "ffn_router_bias"), {s.experts}});
  }
  t.push_back({named(l, "ffn_shared_gate.weight"), {d.hidden, d.ffn}});
  t.push_back({named(l, "ffn_shared_up.weight"), {d.hidden, d.ffn}});
  t.push_back({named(l, "ffn_shared_down.weight"), {d.ffn, d.hidden}});
  for (uint32_t e = 0; e < s.experts; ++e) {
    t.push_back({named(l, fmt::format("expert.{}.gate.weight", e)), {d.hidden, d.ffn}});
    t.push_back({named(l, fmt::format("expert.{}.up.weight", e)), {d.hidden, d.ffn}});
    t.push_back({named(l, fmt::format("expert.{}.down.weight", e)), {d.ffn, d.hidden}});
  }
}

}  // namespace

void add_block_tensors(const ModelDesc& d, uint32_t block, std::vector<TensorSpec>& t) {
  add_hyper_tensors(d, named(block, "attn_hc"), settings(d).gates(), 3, t);
  add_attention_tensors(d, block, t);
  add_hyper_tensors(d, named(block, "ffn_hc"), settings(d).gates(), 3, t);
  add_expert_tensors(d, block, t);
}

std::vector<TensorSpec> all_tensors(const ModelDesc& d) {
  const Settings& s = settings(d);
  std::vector<TensorSpec> t = {{"token_embd.weight", {d.hidden, d.vocab}},
                               {"output_norm.weight", {d.hidden}},
                               {"output.weight", {d.hidden, d.vocab}}};
  add_hyper_tensors(d, "output_hc", s.streams, 1, t);
  for (uint32_t l = 0; l < d.layers; ++l) add_block_tensors(d, l, t);
  return t;
}

}  // namespace stet::deepseek_v4
