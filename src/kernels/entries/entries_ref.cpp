#include <algorithm>
#include <vector>

#include "kernels/common/attention_ref.h"
#include "kernels/common/best_ref.h"
#include "kernels/common/math_ref.h"
#include "kernels/common/state_row_values.h"
#include "kernels/entries/entries.h"

namespace stet {
namespace {

constexpr uint32_t kMostPooled = 2 * kSlots;

float entry_score(const ChooseSpec& spec, const float* q, const float* weight, const float* key) {
  const uint32_t dim = spec.keys.width;
  const auto bf16 = [&](float v) { return rounded_if(spec.rounded, v); };
  float score = 0.0f;
  for (uint32_t h = 0; h < spec.heads; ++h) {
    const float dot = bf16(dot8_ref(q + size_t{h} * dim, dim, [&](uint32_t d) { return key[d]; }));
    // Not max(): a NaN stays one.
    const float positive = dot < 0.0f ? 0.0f : dot, w = bf16(weight[h] * spec.scale);
    score = spec.rounded ? score + bf16(w * positive) : fma32(w, positive, score);
  }
  return bf16(score);
}

}  // namespace

void pool_entry_ref(const PoolSpec& spec, uint32_t j, float* e) {
  const uint32_t r = spec.ratio(), size = spec.size(), width = spec.rows.width / 2;
  const uint32_t before = spec.overlap && j > 0 ? r : 0, n = before + r;
  const float* rows[kMostPooled];  // at the channels that count for this entry
  for (uint32_t i = 0; i < n; ++i) rows[i] = spec.rows.row(r * j - before + i) + (i < before ? 0 : width - size);
  for (uint32_t d = 0; d < size; ++d) {
    float max = rows[0][width + d], p[kMostPooled], sum = 0.0f, acc = 0.0f;
    for (uint32_t i = 1; i < n; ++i) max = std::max(max, rows[i][width + d]);
    for (uint32_t i = 0; i < n; ++i) sum = sum + (p[i] = exp_ref(rows[i][width + d] - max));
    for (uint32_t i = 0; i < n; ++i) acc = fma32(p[i] / sum, rows[i][d], acc);
    e[d] = acc;
  }
}

void choose_entries_ref(const ChooseSpec& spec, uint32_t t, const float* q, const float* weight, float* chosen) {
  const uint32_t seen = visible_entries(t, spec.keys.ratio), count = std::min(seen, spec.top);
  std::fill_n(chosen, spec.top, -1.0f);
  if (seen <= spec.top) {
    for (uint32_t j = 0; j < seen; ++j) chosen[j] = static_cast<float>(j);
    return;
  }
  thread_local std::vector<uint64_t> keys;
  thread_local std::vector<float> space;  // of an entry that is not f32
  keys.resize(seen);
  space.resize(spec.keys.width);
  for (uint32_t j = 0; j < seen; ++j)
    keys[j] = best_key(entry_score(spec, q, weight, load_row(spec.keys, j, space.data())), j);
  best_first(keys, count);
  for (uint32_t i = 0; i < count; ++i) chosen[i] = static_cast<float>(index_of_key(keys[i]));
  std::sort(chosen, chosen + count);
}

}  // namespace stet
