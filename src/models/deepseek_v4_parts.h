// What the files of DeepSeek V4 share: its settings, the names of its tensors, and how its parts are recorded.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/config_reader.h"
#include "models/model_desc.h"

namespace stet::deepseek_v4 {

constexpr uint32_t kOverlapRatio = 4;  // entries of this ratio overlap, and have an indexer
// Blocks that draft stand behind the layers of every model: "mtp.0" is block kDraftBlock, and so on.
constexpr uint32_t kDraftBlock = 1u << 16;

constexpr uint32_t kNoToken = UINT32_MAX;

// What drafts need to know.
struct DraftSettings {
  uint32_t stages = 0;               // blocks; 0: no draft
  std::vector<uint32_t> tap_layers;  // DSpark: the layers whose streams its stages read, ascending
  uint32_t markov_rank = 0, noise = kNoToken, block_size = 0;
};

// What the layer program needs beyond ModelDesc: ModelDesc::settings.
struct Settings {
  uint32_t streams, sinkhorn;
  float hyper_eps;
  uint32_t q_rank, o_rank, o_groups, window;
  uint32_t index_heads, index_dim, index_top;
  uint32_t experts, chosen, hash_layers;
  float expert_scale, limit;
  std::vector<uint32_t> ratios;  // one a layer; 0: no entries
  DraftSettings draft;

  // Blocks of drafts have no entries.
  uint32_t ratio(uint32_t block) const { return block < kDraftBlock ? ratios[block] : 0; }
  bool fine(uint32_t block) const { return ratio(block) == kOverlapRatio; }
  uint32_t gates() const { return streams * (2 + streams); }
};

const Settings& settings(const ModelDesc& d);
// "blk.3.attn_norm", "mtp.0.attn_norm".
std::string named(uint32_t block, std::string_view tensor);

void add_hyper_tensors(const ModelDesc& d, const std::string& prefix, uint64_t outputs, uint64_t scales,
                       std::vector<TensorSpec>& t);
void add_block_tensors(const ModelDesc& d, uint32_t block, std::vector<TensorSpec>& t);
// Of the model itself, without drafts.
std::vector<TensorSpec> all_tensors(const ModelDesc& d);

// How the rows of a block see each other.
enum class Rows : uint8_t {
  stored,  // each is stored, and sees those of its window up to itself
  block,   // none is stored; each sees the window before the pass and all rows of the pass
};

// From the streams (buffer "streams") to the streams.
void record_block(const ModelDesc& d, const ModelWeights& w, ListBuilder& list, uint32_t block, Rows rows);
// Stores the row that attention keeps: of x, or, without one, of what the streams give the block's attention.
void record_kept_row(const ModelDesc& d, const ModelWeights& w, ListBuilder& list, uint32_t block, const Buffer* x);
// From the streams to logits, with the norm and gates named behind `prefix`: "", "mtp.0.". Buffer "head_x" has the rows
// before the norm.
void record_head(const ModelDesc& d, const ModelWeights& w, ListBuilder& list, const std::string& prefix);

// ---- deepseek_v4_drafts.cpp

// The keys of drafts, whether the file's blocks are wanted or not.
void read_draft_keys(ConfigReader& config, DraftSettings& draft);
// Where the source has blocks of a draft: sets s.draft and d.draft, and adds their tensors and states. Throws
// Error(kInput) for keys that contradict the model. REQUIRES: d.settings is s.
void add_draft(const TensorSource& source, ModelDesc& d, Settings& s);
// What the target's own list does for the draft: after layer `layer`, and behind the last one. Nothing without a draft.
void record_tap(const ModelDesc& d, ListBuilder& list, uint32_t layer);
void record_draft_rows(const ModelDesc& d, const ModelWeights& w, ListBuilder& list);

}  // namespace stet::deepseek_v4
