#include <algorithm>
#include <vector>

#include "kernels/common/attention_ref.h"
#include "kernels/common/state_row_values.h"
#include "kernels/entries/entries.h"
#include "kernels/rounding/rounding.h"
#include "kernels/union_attend/union_attend.h"
#include "kernels/union_attend/union_list.h"

namespace stet {
namespace {

struct UnionPart {
  float m, l;
  float o[kMaxUnionDim];
};

// The keys of a row, which are values too, and where its chunks end.
struct KeyList {
  std::vector<const float*> keys;
  std::vector<size_t> ends;

  // At most that many keys of so many elements follow.
  void clear(size_t most, uint32_t width) {
    keys.clear();
    ends.clear();
    if (space_.size() < most * width) space_.resize(most * width);
  }
  // Keys of one chunk follow each other.
  void add(uint32_t chunk, const StateRows& rows, uint32_t i) {
    add(chunk, load_row(rows, i, space_.data() + keys.size() * rows.width));
  }
  void add(uint32_t chunk, const float* key) {
    if (keys.empty() || chunk != chunk_) ends.push_back(keys.size());
    chunk_ = chunk;
    keys.push_back(key);
    ends.back() = keys.size();
  }

 private:
  uint32_t chunk_ = 0;
  std::vector<float> space_;  // of keys that are not f32
};

// Rows `first` .. end - 1 of the window. Their chunks are those of the absolute position; as a checkpoint has it, of
// their slots.
void add_window(const UnionSpec& spec, uint32_t first, uint32_t end, KeyList& list) {
  for (uint32_t p = first; p < end; ++p)
    list.add(spec.rounded ? (p - first) / kRoundedChunk : p / kSlots, spec.rows, p);
}

// The chunk of key i behind the window's rows, position t being the last of them or the one after: chunks of the list,
// or of the slots.
uint32_t chunk_behind(const UnionSpec& spec, uint32_t t, uint32_t i) {
  return spec.rounded ? (spec.window + i) / kRoundedChunk : t / kSlots + 1 + i / kSlots;
}

// How many entries the row attends to.
uint32_t attended_entries(const UnionSpec& spec, uint32_t t) {
  const uint32_t seen = spec.entries.width == 0 ? 0 : visible_entries(t, spec.entries.ratio);
  return spec.top != 0 ? std::min(seen, spec.top) : seen;
}

void add_entries(const UnionSpec& spec, uint32_t t, const float* chosen, KeyList& list) {
  const uint32_t count = attended_entries(spec, t);
  if (count == 0) return;
  const uint32_t seen = visible_entries(t, spec.entries.ratio);
  for (uint32_t i = 0; i < count; ++i) {
    // Whatever a damaged list holds, only entries that the row sees are read.
    const uint32_t j = count < seen ? std::min(static_cast<uint32_t>(std::max(chosen[i], 0.0f)), seen - 1) : i;
    list.add(chunk_behind(spec, t, i), spec.entries, j);
  }
}

// The part of keys [begin, end) with their scores; `top`: the largest score before them.
void weigh_rounded(const KeyList& list, size_t begin, size_t end, const float* s, float top, uint32_t dim,
                   UnionPart& part) {
  part.m = top;
  for (size_t j = begin; j < end; ++j) part.m = std::max(part.m, s[j]);
  float lanes[16] = {};
  std::fill_n(part.o, dim, 0.0f);
  for (size_t j = begin; j < end; ++j) {
    const float p = exp_ref(s[j] - part.m), weight = rounded_bf16(p);
    lanes[(j - begin) % 16] = lanes[(j - begin) % 16] + p;
    for (uint32_t d = 0; d < dim; ++d) part.o[d] = fma32(weight, list.keys[j][d], part.o[d]);
  }
  part.l = fold16_ref(lanes);
}

// One softmax over the list and the sink.
void attend_list(const UnionSpec& spec, uint32_t head, const float* q, const KeyList& list, float* y) {
  const uint32_t dim = spec.rows.width;
  thread_local std::vector<float> scores;
  scores.resize(list.keys.size());
  for (size_t j = 0; j < scores.size(); ++j)
    scores[j] = dot8_ref(q, dim, [&](uint32_t d) { return list.keys[j][d]; }) * spec.scale;
  JoinTree<UnionPart, join_parts_ref<UnionPart>> tree(dim);
  float top = scores[0];
  for (size_t begin = 0, c = 0; c < list.ends.size(); begin = list.ends[c++]) {
    const size_t end = list.ends[c];
    UnionPart& part = tree.next();
    if (spec.rounded) {
      weigh_rounded(list, begin, end, scores.data(), top, dim, part);
      top = part.m;
    } else {
      weigh_values_ref(
          scores.data() + begin, static_cast<uint32_t>(end - begin), dim,
          [&](uint32_t j, uint32_t d) { return list.keys[begin + j][d]; }, part);
    }
    tree.push();
  }
  const UnionPart& all = tree.finish();
  const float m = std::max(all.m, spec.sinks[head]), w = exp_ref(all.m - m);
  const float l = all.l * w + exp_ref(spec.sinks[head] - m);
  for (uint32_t d = 0; d < dim; ++d) y[d] = (all.o[d] * w) / l;
  if (spec.rounded) round_bf16(y, dim);
}

}  // namespace

void union_attend_ref(const UnionSpec& spec, uint32_t head, uint32_t t, const float* q, const float* chosen, float* y) {
  thread_local KeyList list;
  list.clear(size_t{std::min(t + 1, spec.window)} + attended_entries(spec, t), spec.rows.width);
  add_window(spec, t < spec.window ? 0 : t - spec.window + 1, t + 1, list);
  add_entries(spec, t, chosen, list);
  attend_list(spec, head, q, list, y);
}

void block_attend_ref(const UnionSpec& spec, uint32_t head, uint32_t t, const float* q, const float* block, uint32_t n,
                      float* y) {
  thread_local KeyList list;
  list.clear(std::min(t, spec.window), spec.rows.width);
  add_window(spec, t < spec.window ? 0 : t - spec.window, t, list);
  for (uint32_t i = 0; i < n; ++i) list.add(chunk_behind(spec, t, i), block + size_t{i} * spec.rows.width);
  attend_list(spec, head, q, list, y);
}

}  // namespace stet
