// Where the state of a model lies: first the rings, whose size does not depend on the context; then, for each chunk of
// 128 positions, the KV rows of every layer and the rows of ModelDesc::states that are kept for ever. The chunks grow
// together, and nothing ever moves.
//
// A ring of R rows holds the row of position p at p mod R, until p + R is stored. Which rows must still be there:
//   a pass      stores the rows of positions n .. n + m - 1 before it reads any, m <= kWideRows, and its first row
//   reads
//               from n - reach + 1 on:                                            R >= reach - 1 + m
//   a return    to position c, after rows up to w - 1 were stored (rejected proposals included), reads from
//               c - reach + 1 on, and stores again from c on before it reads:     R >= reach - 1 + w - c
// Both are one bound: c >= w - (R - reach + 1), the pass being the return with w - c = m. R is chosen so that
// kWideRows + kReturnRows positions can be returned, whatever stored them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/common/state_rows.h"
#include "models/model_desc.h"

namespace stet {

// Positions that can be returned beyond the widest pass: a verify pass and the short answer before it.
constexpr uint32_t kReturnRows = 128;

// Rows of the ring of a state that is read `reach` rows back: the bound above, rounded up so that aligned runs of as
// many rows as are read at once (up to a chunk) do not wrap. 64 bits: any reach.
uint64_t ring_rows(uint32_t reach);

struct StatePlan {
  struct Ring {
    uint32_t reach, rows;
  };
  KvLayout kv;               // chunk_stride: bytes of a chunk, everything included
  uint64_t fixed_bytes = 0;  // of the rings, before the first chunk
  std::vector<Ring> rings;   // one a state that is a ring

  uint64_t chunk_bytes() const { return kv.chunk_stride; }
  // Bytes of that many positions, in whole chunks.
  uint64_t bytes(uint64_t positions) const { return fixed_bytes + chunk_bytes() * ((positions + kSlots - 1) / kSlots); }
  // Whether the rows that a pass at `position` reads are there when rows of positions 0 .. written - 1 were stored in
  // order, with returns in between. Without rings always.
  bool intact(uint32_t position, uint32_t written) const;
};

// Throws Error(kUnsupported) for a format that the model's heads or states do not allow.
StatePlan plan_state(const ModelDesc& desc, KvFormat format);

// The rows of every state, in memory that begins at `base`.
std::map<std::string, StateRows> place_states(const ModelDesc& desc, const StatePlan& plan, uint8_t* base);

}  // namespace stet
