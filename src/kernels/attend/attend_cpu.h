// rope, store and attend for one instruction set: included once by each file of src/kernels/isa.
#pragma once

#include "kernels/attend/attend.h"
#include "kernels/attend/kv_element.h"
#include "kernels/common/math_cpu.h"

namespace stet::STET_ISA {

static inline void rope(const float* x, RopeRow row, uint32_t rope_dim, uint32_t head_dim, float* y) {
  uint32_t d = 0;
  for (; d + kLanes <= rope_dim; d += kLanes) {
    const F v = load(x + d);
    store(y + d, add(mul(v, load(row.cos + d)), mul(swap_pairs(v), load(row.sin + d))));
  }
  for (; d < rope_dim; ++d) y[d] = x[d] * row.cos[d] + x[d ^ 1u] * row.sin[d];
  for (; d < head_dim; ++d) y[d] = x[d];
}

static inline void store_kv(const KvLayout& l, uint8_t* layer, uint32_t head, uint32_t position, const float* key,
                            const float* value) {
  if (l.format == KvFormat::q8) return store_kv_q8(l, layer, head, position, key, value);
  uint8_t* key_out = key_address(l, layer, head, position, 0);
  uint8_t* value_out = value_address(l, layer, head, position, 0);
  if (l.format == KvFormat::f32) {
    for (uint32_t d = 0; d < l.head_dim; ++d) __builtin_memcpy(key_out + size_t{d} * kSlotGroup * 4, key + d, 4);
    __builtin_memcpy(value_out, value, l.head_dim * 4);
    return;
  }
  alignas(64) uint16_t half[kMaxHeadDim];
  uint32_t d = 0;
  for (; d + kLanes <= l.head_dim; d += kLanes) {
    store_f16(half + d, load(key + d));
    store_f16(reinterpret_cast<uint16_t*>(value_out) + d, load(value + d));
  }
  for (; d < l.head_dim; ++d) {
    half[d] = f32_to_f16(key[d]);
    put_element(l, value_out + d * 2, value[d]);
  }
  for (d = 0; d < l.head_dim; ++d) __builtin_memcpy(key_out + size_t{d} * kSlotGroup * 2, half + d, 2);
}

template <KvFormat kFormat>
static inline F load_kv(const uint8_t* base, size_t element) {
  if constexpr (kFormat == KvFormat::f32) return load(reinterpret_cast<const float*>(base) + element);
  return load_f16(reinterpret_cast<const uint16_t*>(base) + element);
}

// Query heads whose accumulators fit into the registers together.
constexpr uint32_t kQueries = kLanes == 16 ? 4 : 2;

// s[q][128]: unscaled dot products of kN queries and the first n slots (rounded up to 16) of a chunk.
// kTail: head_dim is no multiple of 8.
template <KvFormat kFormat, uint32_t kN, bool kTail>
void scores_float(const AttendRun& run, const uint8_t* keys, const float* q, uint32_t n, float (*s)[kSlots]) {
  const uint32_t dim = run.layout.head_dim;
  for (uint32_t slot = 0; slot < n; slot += kLanes) {
    const size_t base = size_t{slot / kSlotGroup} * dim * kSlotGroup + slot % kSlotGroup;
    F half[2][kN];
    STET_UNROLL
    for (uint32_t part = 0; part < 2; ++part) {
      F acc[kN][4];
      STET_UNROLL
      for (uint32_t j = 0; j < kN; ++j) acc[j][0] = acc[j][1] = acc[j][2] = acc[j][3] = zero();
      for (uint32_t d = part * 4; d < dim; d += 8)
        STET_UNROLL
        for (uint32_t i = 0; i < 4; ++i) {
          if (kTail && d + i >= dim) continue;
          const F k = load_kv<kFormat>(keys, base + size_t{d + i} * kSlotGroup);
          STET_UNROLL
          for (uint32_t j = 0; j < kN; ++j) acc[j][i] = fma(set1(q[j * dim + d + i]), k, acc[j][i]);
        }
      STET_UNROLL
      for (uint32_t j = 0; j < kN; ++j) half[part][j] = add(add(acc[j][0], acc[j][1]), add(acc[j][2], acc[j][3]));
    }
    STET_UNROLL
    for (uint32_t j = 0; j < kN; ++j) store(s[j] + slot, add(half[0][j], half[1][j]));
  }
}

template <uint32_t kN>
void scores_q8(const AttendRun& run, const uint8_t* keys, const float* q, uint32_t n, float (*s)[kSlots]) {
  const uint32_t dim = run.layout.head_dim, blocks = run.layout.blocks();
  const float* scales = reinterpret_cast<const float*>(keys + size_t{kSlots} * dim);
  QuantizedBlock query[kN][kMaxHeadDim / 32];
  int32_t bias[kN][kMaxHeadDim / 32];
  STET_UNROLL
  for (uint32_t j = 0; j < kN; ++j)
    for (uint32_t b = 0; b < blocks; ++b) {
      query[j][b] = quantize_block(q + j * dim + b * 32);
      int32_t sum = 0;
      for (int8_t x : query[j][b].q) sum += x;
      bias[j][b] = -128 * sum;
    }
  for (uint32_t slot = 0; slot < n; slot += kLanes) {
    const uint32_t group = slot / kSlotGroup, lane = slot % kSlotGroup;
    F acc[kN];
    for (F& a : acc) a = zero();
    for (uint32_t b = 0; b < blocks; ++b) {
      const OffsetBytes codes(keys + size_t{group} * dim * kSlotGroup + b * 512 + lane * 4);
      const F dk = load(scales + (size_t{group} * blocks + b) * kSlotGroup + lane);
      STET_UNROLL
      for (uint32_t j = 0; j < kN; ++j)
        acc[j] = fma(mul(set1(query[j][b].d), dk), to_float(codes.dot(query[j][b].q, iset1(bias[j][b]))), acc[j]);
    }
    STET_UNROLL
    for (uint32_t j = 0; j < kN; ++j) store(s[j] + slot, acc[j]);
  }
}

// Turns n scores into p in place (slots beyond n become 0 up to a multiple of 16); m and l of the part.
static inline void softmax_chunk(float* s, uint32_t n, float scale, AttendPart& part) {
  F largest = set1(-__builtin_inff());
  for (uint32_t j = 0; j < n; j += kLanes) {
    const F x = mul(load(s + j), set1(scale));
    store(s + j, x);
    largest = max_keep(largest, select(first_lanes(static_cast<int>(n - j)), x, largest));
  }
  alignas(64) float lanes[16];
  store(lanes, largest);
  float m = lanes[0];
  for (int i = 1; i < kLanes; ++i) m = m > lanes[i] ? m : lanes[i];
  constexpr int kVectors = 16 / kLanes;
  F sum[kVectors];
  for (F& x : sum) x = zero();
  for (uint32_t j = 0; j < n; j += 16)
    STET_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const uint32_t slot = j + static_cast<uint32_t>(v * kLanes);
      const F p = select(first_lanes(static_cast<int>(n) - static_cast<int>(slot)), exp(sub(load(s + slot), set1(m))), zero());
      store(s + slot, p);
      sum[v] = add(sum[v], p);
    }
  STET_UNROLL
  for (int v = 0; v < kVectors; ++v) store(lanes + v * kLanes, sum[v]);
  part.m = m;
  part.l = fold16(lanes);
}

// o of kN parts over kVectors vectors of d, from vector `first`.
template <KvFormat kFormat, uint32_t kN, uint32_t kVectors>
void weigh_values(const AttendRun& run, const uint8_t* values, float (*p)[kSlots], uint32_t n, uint32_t first,
                  AttendPart* parts) {
  const uint32_t stride = run.layout.value_stride(), blocks = run.layout.blocks();
  const float* scales = reinterpret_cast<const float*>(values + size_t{kSlots} * stride);
  F o[kN][kVectors];
  STET_UNROLL
  for (uint32_t i = 0; i < kN; ++i)
    STET_UNROLL
    for (uint32_t v = 0; v < kVectors; ++v) o[i][v] = zero();
  for (uint32_t j = 0; j < n; ++j)
    STET_UNROLL
    for (uint32_t v = 0; v < kVectors; ++v) {
      const uint32_t d = (first + v) * kLanes;
      F value;
      if constexpr (kFormat == KvFormat::q8) {
        value = mul(to_float(load_i8(reinterpret_cast<const int8_t*>(values) + size_t{j} * stride + d)),
                    set1(scales[size_t{j} * blocks + d / 32]));
      } else {
        value = load_kv<kFormat>(values, size_t{j} * stride + d);
      }
      STET_UNROLL
      for (uint32_t i = 0; i < kN; ++i) o[i][v] = fma(set1(p[i][j]), value, o[i][v]);
    }
  for (uint32_t i = 0; i < kN; ++i)
    STET_UNROLL
    for (uint32_t v = 0; v < kVectors; ++v) store(parts[i].o + (first + v) * kLanes, o[i][v]);
}

template <KvFormat kFormat, uint32_t kN>
void attend_chunk(const AttendRun& run, uint32_t chunk, const float* q, AttendPart* parts) {
  const uint32_t seen = run.position + 1 - chunk * kSlots, n = seen < kSlots ? seen : kSlots;
  alignas(64) float s[kN][kSlots];
  const uint8_t* keys = run.layout.keys(run.layer, chunk, run.kv_head);
  const uint8_t* values = keys + run.layout.key_bytes();
  // The values come from memory while the scores are computed.
  for (size_t i = 0; i < size_t{n} * run.layout.value_stride() * run.layout.element_bytes(); i += 64)
    _mm_prefetch(reinterpret_cast<const char*>(values) + i, _MM_HINT_T1);
  if constexpr (kFormat == KvFormat::q8) {
    scores_q8<kN>(run, keys, q, n, s);
  } else {
    if (run.layout.head_dim % 8 == 0) {
      scores_float<kFormat, kN, false>(run, keys, q, n, s);
    } else {
      scores_float<kFormat, kN, true>(run, keys, q, n, s);
    }
  }
  for (uint32_t i = 0; i < kN; ++i) softmax_chunk(s[i], n, run.scale, parts[i]);
  const uint32_t vectors = run.layout.value_stride() / kLanes;
  uint32_t v = 0;
  for (; v + 4 <= vectors; v += 4) weigh_values<kFormat, kN, 4>(run, values, s, n, v, parts);
  for (; v < vectors; ++v) weigh_values<kFormat, kN, 1>(run, values, s, n, v, parts);
}

static inline void join_parts(const AttendPart& a, const AttendPart& b, uint32_t head_dim, AttendPart& out) {
  const float m = a.m > b.m ? a.m : b.m;
  alignas(64) float w[16] = {a.m - m, b.m - m};
  store(w, exp(load(w)));
  const F wa = set1(w[0]), wb = set1(w[1]);
  out.m = m;
  out.l = a.l * w[0] + b.l * w[1];
  for (uint32_t d = 0; d < head_dim; d += kLanes) store(out.o + d, add(mul(load(a.o + d), wa), mul(load(b.o + d), wb)));
}

// The chunks of a run, kN query heads at a time. A subtree of 2^i chunks lives at trees[i].
template <KvFormat kFormat, uint32_t kN>
void attend_queries(const AttendRun& run, const float* q, AttendPart* parts) {
  AttendPart tree[kMaxRunLevels][kN];
  uint32_t depth = 0, count = 0;
  const auto join_top = [&] {
    --depth;
    for (uint32_t i = 0; i < kN; ++i) join_parts(tree[depth - 1][i], tree[depth][i], run.layout.head_dim, tree[depth - 1][i]);
  };
  for (uint32_t c = run.first_chunk; c < run.first_chunk + run.run_chunks && c * kSlots <= run.position; ++c) {
    attend_chunk<kFormat, kN>(run, c, q, tree[depth++]);
    for (uint32_t bits = count++; bits & 1u; bits >>= 1) join_top();
  }
  while (depth > 1) join_top();
  for (uint32_t i = 0; i < kN; ++i) parts[i] = tree[0][i];
}

template <KvFormat kFormat>
void attend_format(const AttendRun& run, AttendPart* parts) {
  const uint32_t dim = run.layout.head_dim;
  uint32_t i = 0;
  if constexpr (kQueries == 4) {
    for (; i + 4 <= run.queries; i += 4) attend_queries<kFormat, 4>(run, run.q + i * dim, parts + i);
    if (i + 3 == run.queries) return attend_queries<kFormat, 3>(run, run.q + i * dim, parts + i);
  }
  for (; i + 2 <= run.queries; i += 2) attend_queries<kFormat, 2>(run, run.q + i * dim, parts + i);
  if (i < run.queries) attend_queries<kFormat, 1>(run, run.q + i * dim, parts + i);
}

static inline void attend(const AttendRun& run, AttendPart* parts) {
  switch (run.layout.format) {
    case KvFormat::f32: return attend_format<KvFormat::f32>(run, parts);
    case KvFormat::f16: return attend_format<KvFormat::f16>(run, parts);
    case KvFormat::q8: return attend_format<KvFormat::q8>(run, parts);
    case KvFormat::fp8: break;  // plan_state refuses it
  }
}

static inline void join(const AttendPart* parts, uint32_t count, uint32_t head_dim, float* y) {
  alignas(64) AttendPart all;
  const AttendPart* root = parts;
  if (count > 1) {
    JoinTree<AttendPart, join_parts> tree(head_dim);
    for (uint32_t i = 0; i < count; ++i) {
      tree.next() = parts[i];
      tree.push();
    }
    all = tree.finish();
    root = &all;
  }
  uint32_t d = 0;
  for (; d + kLanes <= head_dim; d += kLanes) store(y + d, div(load(root->o + d), set1(root->l)));
  for (; d < head_dim; ++d) y[d] = root->o[d] / root->l;
}

}  // namespace stet::STET_ISA
