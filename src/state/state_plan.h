// Where the state of a model lies: for each chunk of 128 positions the KV rows of every layer, then the rows of
// ModelDesc::states. Everything grows together, and nothing ever moves.
#pragma once

#include <map>
#include <string>

#include "kernels/common/state_rows.h"
#include "models/model_desc.h"

namespace stet {

struct StatePlan {
  KvLayout kv;  // chunk_stride: bytes of a chunk, everything included

  uint64_t chunk_bytes() const { return kv.chunk_stride; }
  // Bytes of that many positions, in whole chunks.
  uint64_t bytes(uint64_t positions) const { return chunk_bytes() * ((positions + kSlots - 1) / kSlots); }
};

// Throws Error(kUnsupported) for a format that the model's heads or states do not allow.
StatePlan plan_state(const ModelDesc& desc, KvFormat format);

// The rows of every state, in memory that begins at `base`.
std::map<std::string, StateRows> place_states(const ModelDesc& desc, const StatePlan& plan, uint8_t* base);

}  // namespace stet
