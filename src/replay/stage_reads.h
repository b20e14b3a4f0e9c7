// What a stage is called, and what it has to read: for profiles.
#pragma once

#include <string>

#include "replay/lowered.h"

namespace stet {

// "blk.3.attn_q+attn_k+attn_v", "prepare blk.3.ffn_down".
std::string stage_name(const Stage& stage);
// The same without the layer: "attn_q+attn_k+attn_v".
std::string stage_kind_name(const Stage& stage);

// Bytes that a run cannot do without: each weight once, each visible KV row once, each input row once. What stays
// inside the stage, scratch and writes do not count.
struct StageReads {
  uint64_t weights = 0, kv = 0, activations = 0;

  uint64_t total() const { return weights + kv + activations; }
  StageReads& operator+=(const StageReads& other) {
    weights += other.weights;
    kv += other.kv;
    activations += other.activations;
    return *this;
  }
};

// rows: of the list that the stage belongs to. position: of the pass's first row.
StageReads stage_reads(const Stage& stage, uint32_t rows, uint32_t position);

}  // namespace stet
