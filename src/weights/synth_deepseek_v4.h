// Synthetic models of DeepSeek V4's geometry in the formats of its published checkpoints: FP8, FP4, BF16 and F32, with
// random weights, and optionally the blocks of a draft.
//
// What a verify pass costs depends on how many experts its rows choose between them, so there are two routers, for 160
// experts with 6 chosen: `uniform`, where every expert is as likely as another (8 rows choose 42 different ones), and
// `skewed`, where some are popular (26, what measured times of real text imply). Popularity is a bias drawn evenly,
// with a standard deviation of 0.6 beside scores of 0.3, and, where a table chooses, of 0.37 beside even draws of 0.29.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weights/synth_tensors.h"

namespace stet {

struct DeepseekV4Geometry {
  std::string_view name;
  uint32_t layers, hash_layers, vocab, context;
  uint32_t hidden, heads, head_dim, q_rank, o_rank, o_groups, window;
  uint32_t index_heads, index_dim, index_top;
  uint32_t experts, chosen, ffn;
  uint32_t rope_original;  // context that YaRN stretches
  std::string_view draft;  // "", "mtp", "dspark"
  uint32_t markov_rank;
};

class SynthDeepseekV4 : public SynthTensors {
 public:
  // Does "synth:NAME..." name one of these?
  static bool is_name(std::string_view name);
  static std::string list_geometries();

  // From "synth:GEOMETRY", "synth:GEOMETRY:ROUTER" or "synth:GEOMETRY:ROUTER:SEED" (uniform, seed 1). drafts: with the
  // blocks of the geometry's draft, if it has one. Throws Error(kUsage) that lists what there is.
  static std::unique_ptr<SynthDeepseekV4> create(std::string_view name, bool drafts);

  void read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override;
  std::string identity() const override;

 private:
  SynthDeepseekV4(const DeepseekV4Geometry& geometry, bool skewed, uint64_t seed, bool drafts);
  void add_hyper(const std::string& prefix, uint64_t outputs, uint64_t scales);
  void add_pool(const std::string& prefix, uint64_t size, uint32_t ratio);
  void add_attention(const std::string& block, uint32_t ratio);
  void add_experts(const std::string& block, bool hashed);
  void add_block(const std::string& block, uint32_t ratio, bool hashed);
  void add_draft();
  void read_table(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const;
  void chosen_of_token(uint64_t key, uint64_t token, float* ids) const;

  const DeepseekV4Geometry& geometry_;
  const bool skewed_;
  const bool drafts_;
};

}  // namespace stet
