#include <algorithm>
#include <vector>

#include "kernels/common/attention_ref.h"
#include "kernels/common/state_row_values.h"
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

}  // namespace

void union_attend_ref(const UnionSpec& spec, uint32_t head, uint32_t t, const float* q, const float* chosen, float* y) {
  const uint32_t dim = spec.rows.width;
  const float* keys[kSlots];
  thread_local std::vector<float> space(size_t{kSlots} * kMaxUnionDim);  // of keys that are not f32
  JoinTree<UnionPart, join_parts_ref<UnionPart>> tree(dim);
  for (uint32_t next = t < spec.window ? 0 : t - spec.window + 1; next <= t;) {
    uint32_t n = 0;
    do keys[n] = load_row(spec.rows, next++, &space[size_t{n} * dim]), ++n;
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
      keys[i] = load_row(spec.entries, j, &space[size_t{i} * dim]);
    }
    attend_keys(keys, n, q, dim, spec.scale, tree.next());
    tree.push();
  }
  const UnionPart& all = tree.finish();
  const float m = std::max(all.m, spec.sinks[head]), w = exp_ref(all.m - m);
  const float l = all.l * w + exp_ref(spec.sinks[head] - m);
  for (uint32_t d = 0; d < dim; ++d) y[d] = (all.o[d] * w) / l;
}

}  // namespace stet
