#include <algorithm>

#include "kernels/common/attention_ref.h"
#include "kernels/entries/entries.h"
#include "kernels/union_attend/union_attend.h"

namespace stet {
namespace {

struct UnionPart {
  float m, l;
  float o[kMaxUnionDim];
};

// Up to kSlots keys, which are values too.
void attend_keys(const float* const* keys, uint32_t n, const float* q, uint32_t dim, float scale, UnionPart& part) {
  float s[kSlots] = {};
  for (uint32_t j = 0; j < n; ++j) s[j] = dot8_ref(q, dim, [&](uint32_t d) { return keys[j][d]; }) * scale;
  weigh_values_ref(
      s, n, dim, [&](uint32_t j, uint32_t d) { return keys[j][d]; }, part);
}

using UnionTree = JoinTree<UnionPart, join_parts_ref<UnionPart>>;

void finish_with_sink(UnionTree& tree, float sink, uint32_t dim, float* y) {
  const UnionPart& all = tree.finish();
  const float m = std::max(all.m, sink), w = exp_ref(all.m - m);
  const float l = all.l * w + exp_ref(sink - m);
  for (uint32_t d = 0; d < dim; ++d) y[d] = (all.o[d] * w) / l;
}

}  // namespace

void union_attend_ref(const UnionSpec& spec, uint32_t head, uint32_t t, const float* q, const float* chosen, float* y) {
  const uint32_t dim = spec.rows.width;
  const float* keys[kSlots];
  JoinTree<UnionPart, join_parts_ref<UnionPart>> tree(dim);
  for (uint32_t next = t < spec.window ? 0 : t - spec.window + 1; next <= t;) {
    uint32_t n = 0;
    do keys[n++] = spec.rows.row(next++);
    while (next <= t && next % kSlots != 0);
    attend_keys(keys, n, q, dim, spec.scale, tree.next());
    tree.push();
  }
  const uint32_t seen = spec.entries.width == 0 ? 0 : visible_entries(t, spec.entries.ratio);
  const bool listed = spec.top != 0 && seen > spec.top;
  const uint32_t count = listed ? spec.top : seen;
  for (uint32_t first = 0; first < count; first += kSlots) {
    const uint32_t n = std::min(kSlots, count - first);
    for (uint32_t i = 0; i < n; ++i) {
      // Whatever a damaged list holds, only entries that the row sees are read.
      const uint32_t j =
          listed ? std::min(static_cast<uint32_t>(std::max(chosen[first + i], 0.0f)), seen - 1) : first + i;
      keys[i] = spec.entries.row(j);
    }
    attend_keys(keys, n, q, dim, spec.scale, tree.next());
    tree.push();
  }
  finish_with_sink(tree, spec.sinks[head], dim, y);
}

void block_attend_ref(const UnionSpec& spec, uint32_t head, uint32_t t, const float* q, const float* block, uint32_t n,
                      float* y) {
  const uint32_t dim = spec.rows.width;
  const float* keys[kSlots];
  UnionTree tree(dim);
  for (uint32_t next = t < spec.window ? 0 : t - spec.window; next < t;) {
    uint32_t stored = 0;
    do keys[stored++] = spec.rows.row(next++);
    while (next < t && next % kSlots != 0);
    attend_keys(keys, stored, q, dim, spec.scale, tree.next());
    tree.push();
  }
  for (uint32_t i = 0; i < n; ++i) keys[i] = block + size_t{i} * dim;
  attend_keys(keys, n, q, dim, spec.scale, tree.next());
  tree.push();
  finish_with_sink(tree, spec.sinks[head], dim, y);
}

}  // namespace stet
