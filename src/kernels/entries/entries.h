// Entries: every `ratio` rows of a sequence pooled into one, and the choice of the entries that a row attends to
// (DeepSeek V4, inference/model.py: Compressor and Indexer).
//
// A row of the pool is [c, z], halves of `width` elements each; width is `size`, or 2 * size where entries overlap:
// then the first half of c and z is the row's part of the next entry, the second half that of its own. pool: entry j of
// rows ratio * j .. ratio * j + ratio - 1 (overlapping: and the rows of entry j - 1 before them, if there are any).
//   Per channel, rows in ascending order: m = max z, p = exp(z - m), sum of p in order, e = sum of (p / sum) * c by fma
//   in order from +0.
// scores: s_j = sum over heads h of w_h * max(dot(q_h, k_j), 0), fma in h order from +0; dot in the order of attend;
// w_h = weight_h *
//   scale, rounded. In the mode of a checkpoint every step is rounded to bf16: w_h, the dot, the product with the
//   weight, and the sum over heads, which is of f32 additions in h order. A row chooses the best `top` of the entries
//   it sees, ties to the lowest index, and lists them in ascending order.
// Guarantee: exact.
#pragma once

#include <cstdint>

#include "kernels/common/state_rows.h"

namespace stet {

// Entries whose last row is not behind position t.
STET_BOTH inline uint32_t visible_entries(uint32_t t, uint32_t ratio) { return (t + 1) / ratio; }

struct PoolSpec {
  StateRows rows;     // width 2 * width of c, f32
  StateRows entries;  // width `size`
  bool overlap = false;

  STET_BOTH uint32_t ratio() const { return entries.ratio; }
  STET_BOTH uint32_t size() const { return entries.width; }
};

// e [size]: entry j before norm and rotation.
void pool_entry_ref(const PoolSpec& spec, uint32_t j, float* e);

struct ChooseSpec {
  StateRows keys;  // the entries as the indexer sees them, width head_dim
  uint32_t heads = 0;
  uint32_t top = 0;
  float scale = 1.0f;    // of the heads' weights
  bool rounded = false;  // as a checkpoint has it
};

// For the row at position t: q [heads][keys.width], weight [heads]. chosen [top]: indices as floats, ascending; behind
// them -1. All entries are chosen where the row sees no more than `top`.
void choose_entries_ref(const ChooseSpec& spec, uint32_t t, const float* q, const float* weight, float* chosen);

}  // namespace stet
