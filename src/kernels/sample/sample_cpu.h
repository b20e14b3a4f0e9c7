// The sampling ops for one instruction set: included once by each file of src/kernels/isa.
#pragma once

#include "base/fp.h"
#include "kernels/sample/gumbel_cpu.h"
#include "kernels/sample/sample.h"

namespace stet::STET_ISA {

static inline I magnitude_bits(F x) { return iand(as_int(x), iset1(0x7fffffff)); }

static inline uint32_t first_bad_logit(const float* logits, uint32_t n) {
  uint32_t i = 0;
  while (i < n && (bits_of_float(logits[i]) & 0x7fffffffu) < 0x7f800000u) ++i;
  return i;
}

// Two passes: the largest value, then the first place that equals it, so that no lane carries an index.
static inline Argmax argmax(const float* logits, uint32_t n) {
  constexpr uint32_t kBlock = 4 * kLanes;
  F top[4];
  I magnitude[4];
  STET_UNROLL
  for (int j = 0; j < 4; ++j) top[j] = set1(logits[0]), magnitude[j] = izero();
  uint32_t i = 0;
  for (; n - i >= kBlock; i += kBlock) {
    STET_UNROLL
    for (int j = 0; j < 4; ++j) {
      const F x = load(logits + i + static_cast<uint32_t>(j * kLanes));
      top[j] = max_keep(top[j], x);
      magnitude[j] = imax(magnitude[j], magnitude_bits(x));
    }
  }
  alignas(64) float rest[kBlock];
  copy_padded(logits + i, n - i, logits[0], rest, kBlock);
  STET_UNROLL
  for (int j = 0; j < 4; ++j) {
    const F x = load(rest + j * kLanes);
    top[j] = max_keep(top[j], x);
    magnitude[j] = imax(magnitude[j], magnitude_bits(x));
  }
  if (max_lane(imax(imax(magnitude[0], magnitude[1]), imax(magnitude[2], magnitude[3]))) >= 0x7f800000)
    return {0, first_bad_logit(logits, n)};
  store(rest, max_keep(max_keep(top[0], top[1]), max_keep(top[2], top[3])));
  float best = rest[0];
  for (int j = 1; j < kLanes; ++j) best = rest[j] > best ? rest[j] : best;
  uint32_t first = 0;
  for (; n - first >= kLanes; first += kLanes)
    if (lane_bits(equal(load(logits + first), set1(best))) != 0) break;
  while (logits[first] != best) ++first;
  return {first, n};
}

static inline I weights_of(F logits, F max, F temperature) {
  return truncate(mul(exp(tempered(logits, max, temperature)), set1(0x1p31f)));
}

static inline uint64_t weights(const float* logits, uint32_t n, float max, float temperature, uint32_t* out) {
  const F m = set1(max), t = set1(temperature);
  I sum = izero();
  uint32_t i = 0;
  for (; n - i >= kLanes; i += kLanes) {
    const I w = weights_of(load(logits + i), m, t);
    istore(out + i, w);
    sum = add_wide(sum, w);
  }
  uint64_t total = sum_wide(sum);
  alignas(64) float rest[kLanes];
  alignas(64) uint32_t rest_weights[kLanes];
  copy_padded(logits + i, n - i, max, rest, kLanes);
  istore(rest_weights, weights_of(load(rest), m, t));
  for (uint32_t j = 0; j < n - i; ++j) out[i + j] = rest_weights[j], total += rest_weights[j];
  return total;
}

static inline uint32_t sort_key(float logit) {
  const uint32_t bits = bits_of_float(logit + 0.0f);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

static inline void sort_keys(const float* logits, uint32_t n, uint32_t* keys) {
  uint32_t i = 0;
  for (; n - i >= kLanes; i += kLanes) {
    const I bits = as_int(add(load(logits + i), zero()));
    istore(keys + i, ixor(bits, ior(sar<31>(bits), iset1(static_cast<int32_t>(0x80000000u)))));
  }
  for (; i < n; ++i) keys[i] = sort_key(logits[i]);
}

static inline Tally tally(const uint32_t* keys, uint32_t n, uint32_t at_least) {
  const I least = iset1(static_cast<int32_t>(at_least));
  I sum = izero();
  Tally t = {0, 0};
  uint32_t i = 0;
  for (; n - i >= kLanes; i += kLanes) {
    const I key = iload(keys + i);
    const M in = at_least_unsigned(key, least);
    sum = add_wide(sum, select(in, key, izero()));
    t.count += static_cast<uint32_t>(__builtin_popcount(lane_bits(in)));
  }
  t.sum = sum_wide(sum);
  for (; i < n; ++i)
    if (keys[i] >= at_least) t.sum += keys[i], ++t.count;
  return t;
}

static inline uint32_t compact(const uint32_t* keys, const uint32_t* ids, uint32_t n, uint32_t at_least,
                               uint32_t* out_keys, uint32_t* out_ids) {
  const I least = iset1(static_cast<int32_t>(at_least)), lanes = lane_numbers();
  uint32_t kept = 0, i = 0;
  for (; n - i >= kLanes; i += kLanes) {
    const I key = iload(keys + i);
    const I id = ids != nullptr ? iload(ids + i) : iadd(lanes, iset1(static_cast<int32_t>(i)));
    const uint32_t in = lane_bits(at_least_unsigned(key, least));
    if (in == 0) continue;
    // Whole vectors: kept <= i, so they end within n and reach no entry that is still to be read.
    istore(out_keys + kept, compress(key, in));
    istore(out_ids + kept, compress(id, in));
    kept += static_cast<uint32_t>(__builtin_popcount(in));
  }
  for (; i < n; ++i) {
    const uint32_t key = keys[i], id = ids != nullptr ? ids[i] : i;
    if (key >= at_least) out_keys[kept] = key, out_ids[kept++] = id;
  }
  return kept;
}

static SampleKernels sample_table() {
  return {argmax, weights, sort_keys, tally, compact, gumbel_noise, gumbel_row, gumbel_list};
}

}  // namespace stet::STET_ISA
