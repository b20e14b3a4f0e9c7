// Rows of logits, and sampling written down a second time: whole sorts and plain loops, with nothing shared but exp and
// the noise.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "base/philox.h"
#include "kernels/sample/gumbel_ref.h"
#include "spec/sampling.h"

namespace stet::test {

// Bell-shaped about 0, within 4 spreads, the same on every machine; rounded to multiples of step there are many equals.
inline std::vector<float> row_of_logits(uint32_t vocab, float spread, uint32_t seed, float step = 0.0f) {
  std::vector<float> row(vocab);
  for (uint32_t i = 0; i < vocab; ++i) {
    const Philox r = philox4x32({{i, seed, 1, 2}}, 3, 4);
    int32_t sum = 0;
    for (uint32_t word : r.word) sum += static_cast<int32_t>(word >> 16) - 32768;
    row[i] = static_cast<float>(sum) * 0x1p-15f * spread;
    if (step > 0) row[i] = rint32(row[i] / step) * step;
  }
  return row;
}

inline std::vector<uint32_t> plain_candidates(const std::vector<float>& row, float max, float temperature,
                                              const Truncation& t) {
  std::vector<uint32_t> ids(row.size());
  std::iota(ids.begin(), ids.end(), 0u);
  std::sort(ids.begin(), ids.end(),
            [&row](uint32_t a, uint32_t b) { return row[a] > row[b] || (row[a] == row[b] && a < b); });
  if (t.top_k != 0 && t.top_k < ids.size()) ids.resize(t.top_k);
  std::vector<uint64_t> weight(row.size());
  for (uint32_t id : ids) weight[id] = static_cast<uint64_t>(exp_ref((row[id] - max) / temperature) * 2147483648.0f);
  std::sort(ids.begin(), ids.end(),
            [&](uint32_t a, uint32_t b) { return weight[a] > weight[b] || (weight[a] == weight[b] && a < b); });
  if (t.top_p < 1.0f) {
    // The sum reaches ceil(P total / 2^32) when sum * 2^32 reaches P total.
    using Wide = unsigned __int128;
    const auto p = static_cast<Wide>(std::max(1.0L, std::floor(static_cast<long double>(t.top_p) * 0x1p32L)));
    Wide total = 0, sum = 0;
    for (uint32_t id : ids) total += weight[id];
    size_t kept = 0;
    do {
      sum += weight[ids[kept++]];
    } while (sum << 32 < p * total);
    ids.resize(kept);
  }
  const double floor_weight = std::floor(static_cast<double>(t.min_p) * 0x1p31);
  std::erase_if(ids, [&](uint32_t id) { return static_cast<double>(weight[id]) < floor_weight; });
  std::sort(ids.begin(), ids.end());
  return ids;
}

inline int32_t plain_sample(std::vector<float> row, const std::vector<int32_t>& prompt,
                            const std::vector<int32_t>& output, const SamplingParams& p, uint64_t position) {
  for (uint32_t i = 0; i < row.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (p.logit_bias.contains(id)) row[i] = row[i] + p.logit_bias.at(id);
    const auto in_prompt = std::count(prompt.begin(), prompt.end(), id),
               in_output = std::count(output.begin(), output.end(), id);
    if (in_prompt + in_output > 0) row[i] = row[i] < 0 ? row[i] * p.repetition_penalty : row[i] / p.repetition_penalty;
    if (in_output > 0) {
      row[i] = row[i] - static_cast<float>(in_output) * p.frequency_penalty;
      row[i] = row[i] - p.presence_penalty;
    }
  }
  const auto top = std::max_element(row.begin(), row.end());
  if (p.temperature == 0.0f) return static_cast<int32_t>(top - row.begin());
  int32_t best = -1;
  float best_score = 0;
  for (uint32_t id : plain_candidates(row, *top, p.temperature, {p.top_k, p.top_p, p.min_p})) {
    const float score = (row[id] - *top) / p.temperature + gumbel_ref({p.seed, position}, id);
    if (best < 0 || score > best_score) best = static_cast<int32_t>(id), best_score = score;
  }
  return best;
}

}  // namespace stet::test
