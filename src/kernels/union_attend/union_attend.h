// Attention of one query head over a window of rows and a set of entries, one softmax over both and a sink (DeepSeek
// V4). A row is key and value at once, and one row serves all heads.
//
// The key list of the row at position t is canonical: the rows max(0, t - window + 1) .. t, cut into chunks at
// multiples of 128 of the absolute position; then the entries it attends to, ascending, cut every 128 of the list.
// Chunks are computed and joined as docs/numerics.md 6.2 says (s = dot * scale; 8 partial sums; p = exp(s - m); 16
// lanes; tree over the chunks of the list). At the end, with the sink s: M = max(m, s), w = exp(m - M), l = l * w +
// exp(s - M), y_d = (o_d * w) / l. Then the last rope_dim elements of y are turned back by the angle of t.
//
// In the mode of a checkpoint the list is cut every 64 slots instead, as the published kernel cuts it: the window's
// rows from the oldest on in slots 0, 1, ..., entry i of the list in slot window + i. Chunks take the largest score so
// far, this chunk's included, for m, and weigh values by bf16(p); l sums p itself. The result is rounded to bf16, and
// the rotated elements once more. Guarantee: exact. Limits: width <= kMaxUnionDim.
#pragma once

#include <cstdint>

#include "kernels/attend/attend.h"
#include "kernels/common/state_rows.h"

namespace stet {

constexpr uint32_t kMaxUnionDim = 512;

struct UnionSpec {
  StateRows rows;     // one a position
  StateRows entries;  // width 0: none
  uint32_t window = 0;
  uint32_t top = 0;  // a row attends to that many entries at most; 0: to all that it sees
  uint32_t heads = 0;
  float scale = 1.0f;
  const float* sinks = nullptr;  // [heads]
  bool rounded = false;          // as a checkpoint has it
};

// q [width] of head `head`, rotated; chosen [top]: the row's entries, as choose_entries lists them (null when top is
// 0). y [width], not turned back.
void union_attend_ref(const UnionSpec& spec, uint32_t head, uint32_t t, const float* q, const float* chosen, float* y);

// The same over stored rows and a block that is stored nowhere (DeepSeek V4's DSpark): the list is the rows max(0, t -
// window) .. t - 1, cut as above, then all n rows of the block, as one chunk; every row of the block has this list,
// whatever its place. t: position of the block's first row. block [n][width], n <= kSlots, t + n >= 1.
void block_attend_ref(const UnionSpec& spec, uint32_t head, uint32_t t, const float* q, const float* block, uint32_t n,
                      float* y);

}  // namespace stet
