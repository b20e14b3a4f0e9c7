#include <algorithm>

#include "base/fp.h"
#include "kernels/attend/attend.h"
#include "kernels/attend/kv_element.h"
#include "kernels/common/attention_ref.h"

namespace stet {
namespace {

float dot_float(const AttendRun& run, const float* q, uint32_t position) {
  return dot8_ref(q, run.layout.head_dim,
                  [&](uint32_t d) { return key_element(run.layout, run.layer, run.kv_head, position, d); });
}

float dot_q8(const AttendRun& run, const float* q, uint32_t position) {
  float acc = 0.0f;
  for (uint32_t b = 0; b < run.layout.blocks(); ++b) {
    const QuantizedBlock query = quantize_block(q + b * 32);
    int32_t isum = 0;
    for (uint32_t i = 0; i < 32; ++i)
      isum += query.q[i] * key_code(run.layout, run.layer, run.kv_head, position, b * 32 + i);
    const float dk = *key_scale(run.layout, run.layer, run.kv_head, position, b);
    acc = fma32(query.d * dk, static_cast<float>(isum), acc);
  }
  return acc;
}

void attend_chunk(const AttendRun& run, const float* q, uint32_t chunk, AttendPart& part) {
  const uint32_t first = chunk * kSlots, n = std::min(kSlots, run.position + 1 - first);
  float s[kSlots] = {};
  for (uint32_t j = 0; j < n; ++j)
    s[j] = (run.layout.format == KvFormat::q8 ? dot_q8(run, q, first + j) : dot_float(run, q, first + j)) * run.scale;
  const auto value = [&](uint32_t j, uint32_t d) {
    return value_element(run.layout, run.layer, run.kv_head, first + j, d);
  };
  weigh_values_ref(s, n, run.layout.head_dim, value, part);
}

}  // namespace

void rope_ref(const float* x, RopeRow row, uint32_t rope_dim, uint32_t head_dim, float* y) {
  for (uint32_t d = 0; d < rope_dim; ++d) y[d] = x[d] * row.cos[d] + x[d ^ 1u] * row.sin[d];
  std::copy(x + rope_dim, x + head_dim, y + rope_dim);
}

void store_kv_ref(const KvLayout& layout, uint8_t* layer, uint32_t head, uint32_t position, const float* key,
                  const float* value) {
  if (layout.format == KvFormat::q8) return store_kv_q8(layout, layer, head, position, key, value);
  for (uint32_t d = 0; d < layout.head_dim; ++d) {
    put_element(layout, key_address(layout, layer, head, position, d), key[d]);
    put_element(layout, value_address(layout, layer, head, position, d), value[d]);
  }
}

void attend_ref(const AttendRun& run, AttendPart* parts) {
  for (uint32_t i = 0; i < run.queries; ++i) {
    JoinTree<AttendPart, join_parts_ref<AttendPart>> tree(run.layout.head_dim);
    for (uint32_t c = run.first_chunk; c < run.first_chunk + run.run_chunks && c * kSlots <= run.position; ++c) {
      attend_chunk(run, run.q + i * run.layout.head_dim, c, tree.next());
      tree.push();
    }
    parts[i] = tree.finish();
  }
}

void join_ref(const AttendPart* parts, uint32_t count, uint32_t head_dim, float* y) {
  JoinTree<AttendPart, join_parts_ref<AttendPart>> tree(head_dim);
  for (uint32_t i = 0; i < count; ++i) {
    tree.next() = parts[i];
    tree.push();
  }
  const AttendPart& all = tree.finish();
  for (uint32_t d = 0; d < head_dim; ++d) y[d] = all.o[d] / all.l;
}

}  // namespace stet
