// Gumbel noise for one instruction set; gumbel_ref.h is its scalar twin and says how it works.
#pragma once

#include "kernels/common/math_cpu.h"
#include "kernels/sample/sample.h"

namespace stet::STET_ISA {

static inline F unit(I r) {
  const F high = mul(to_float(shr<16>(r)), set1(65536.0f));
  const F low = add(to_float(iand(r, iset1(0xffff))), set1(0.5f));
  return mul(add(high, low), set1(0x1p-32f));
}

static inline F gumbel_of_words(I r) {
  const F u = unit(r), w = unit(ixor(r, iset1(-1)));
  const Scaled s = split_log(u);
  const M near_one = at_least(u, set1(kSqrtHalf));  // where e is zero
  const F numerator = select(near_one, sub(zero(), w), sub(s.m, set1(1.0f)));
  const F denominator = select(near_one, sub(set1(2.0f), w), add(s.m, set1(1.0f)));
  const F exponential = sub(zero(), log_ratio(s.e, numerator, denominator));
  return sub(zero(), log(exponential));
}

// Philox4x32-10 in every lane: the lanes differ in counter word 2.
struct VectorPhilox {
  int32_t position[2];
  int32_t keys[10][2];
  explicit VectorPhilox(NoiseStream stream)
      : position{static_cast<int32_t>(stream.position), static_cast<int32_t>(stream.position >> 32)} {
    uint32_t key0 = static_cast<uint32_t>(stream.seed), key1 = static_cast<uint32_t>(stream.seed >> 32);
    for (auto& key : keys) {
      key[0] = static_cast<int32_t>(key0), key[1] = static_cast<int32_t>(key1);
      key0 += 0x9E3779B9u, key1 += 0xBB67AE85u;
    }
  }
  void draw(I counter2, I words[4]) const {
    I x0 = iset1(position[0]), x1 = iset1(position[1]), x2 = counter2, x3 = iset1(static_cast<int32_t>(kGumbelStream));
    const I a = iset1(static_cast<int32_t>(0xD2511F53u)), b = iset1(static_cast<int32_t>(0xCD9E8D57u));
    for (const auto& key : keys) {
      I high0, low0, high2, low2;
      multiply_wide(x0, a, high0, low0);
      multiply_wide(x2, b, high2, low2);
      x0 = ixor(ixor(high2, x1), iset1(key[0]));
      x2 = ixor(ixor(high0, x3), iset1(key[1]));
      x1 = low2, x3 = low0;
    }
    words[0] = x0, words[1] = x1, words[2] = x2, words[3] = x3;
  }
};

// The best score of each lane so far, the first among equals.
struct BestLanes {
  F score;
  I id;
  void offer(F candidate, I candidate_id) {
    const M better = greater(candidate, score);
    score = select(better, candidate, score);
    id = select(better, candidate_id, id);
  }
  uint32_t lowest_id_of_best() const {
    alignas(64) float scores[kLanes];
    alignas(64) uint32_t ids[kLanes];
    store(scores, score), istore(ids, id);
    int best = 0;
    for (int i = 1; i < kLanes; ++i)
      if (scores[i] > scores[best] || (scores[i] == scores[best] && ids[i] < ids[best])) best = i;
    return ids[best];
  }
};

static inline F tempered(F logits, F max, F temperature) { return div(sub(logits, max), temperature); }

static inline I lane_numbers() {
  alignas(64) int32_t lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = i;
  return iload(lanes);
}

// Counters in an order that makes the transposed words of a block those of 4 * kLanes consecutive tokens.
static inline I block_counters() {
  alignas(64) int32_t counters[kLanes];
  for (int i = 0; i < kLanes; ++i) counters[i] = i % 4 * (kLanes / 4) + i / 4;
  return iload(counters);
}

static inline void copy_padded(const float* from, uint32_t n, float pad, float* to, uint32_t padded) {
  for (uint32_t i = 0; i < padded; ++i) to[i] = i < n ? from[i] : pad;
}

static inline void gumbel_noise(const uint32_t* words, uint32_t n, float* noise) {
  uint32_t i = 0;
  for (; n - i >= kLanes; i += kLanes) store(noise + i, gumbel_of_words(iload(words + i)));
  alignas(64) uint32_t rest[kLanes] = {};
  alignas(64) float rest_noise[kLanes];
  for (uint32_t j = 0; j < n - i; ++j) rest[j] = words[i + j];
  store(rest_noise, gumbel_of_words(iload(rest)));
  for (uint32_t j = 0; j < n - i; ++j) noise[i + j] = rest_noise[j];
}

// Scores of the 4 * kLanes tokens from first_id on.
static inline void gumbel_block(const VectorPhilox& philox, const F x[4], uint32_t first_id, I lanes, I counters,
                                BestLanes& best) {
  I words[4];
  philox.draw(iadd(counters, iset1(static_cast<int32_t>(first_id / 4))), words);
  transpose4(words);
  STET_UNROLL
  for (int j = 0; j < 4; ++j)
    best.offer(add(x[j], gumbel_of_words(words[j])), iadd(lanes, iset1(static_cast<int32_t>(first_id) + j * kLanes)));
}

static inline uint32_t gumbel_row(const float* logits, uint32_t n, uint32_t argmax, float temperature,
                                  NoiseStream stream) {
  constexpr uint32_t kBlock = 4 * kLanes;
  const VectorPhilox philox(stream);
  const F max = set1(logits[argmax]), t = set1(temperature), bound = set1(kGumbelBound);
  const I lanes = lane_numbers(), counters = block_counters();
  // The argmax's own score is a lower bound of the best one, and lets blocks that cannot reach it be skipped. One less,
  // so that the token itself, or an equal one before it, still has to win.
  alignas(64) float noise[kLanes];
  I words[4];
  philox.draw(iset1(static_cast<int32_t>(argmax / 4)), words);
  store(noise, gumbel_of_words(words[argmax % 4]));
  BestLanes best = {set1(noise[0] - 1.0f), iset1(static_cast<int32_t>(argmax))};
  alignas(64) float tail[kBlock];
  for (uint32_t i = 0; i < n; i += kBlock) {
    const float* p = logits + i;
    if (n - i < kBlock) {
      copy_padded(p, n - i, -__builtin_inff(), tail, kBlock);
      p = tail;
    }
    F x[4];
    STET_UNROLL
    for (int j = 0; j < 4; ++j) x[j] = tempered(load(p + j * kLanes), max, t);
    const F top = max_keep(max_keep(x[0], x[1]), max_keep(x[2], x[3]));
    if (lane_bits(at_least(add(top, bound), best.score)) == 0) continue;
    gumbel_block(philox, x, i, lanes, counters, best);
  }
  return best.lowest_id_of_best();
}

static inline uint32_t gumbel_list(const float* logits, const uint32_t* ids, uint32_t n, float max, float temperature,
                                   NoiseStream stream) {
  const VectorPhilox philox(stream);
  BestLanes best = {set1(-__builtin_inff()), iset1(static_cast<int32_t>(ids[0]))};
  alignas(64) float tail_logits[kLanes];
  alignas(64) uint32_t tail_ids[kLanes] = {};
  for (uint32_t i = 0; i < n; i += kLanes) {
    const float* p = logits + i;
    const uint32_t* id = ids + i;
    if (n - i < kLanes) {
      copy_padded(p, n - i, -__builtin_inff(), tail_logits, kLanes);
      for (uint32_t j = 0; j < n - i; ++j) tail_ids[j] = id[j];
      p = tail_logits, id = tail_ids;
    }
    const I token = iload(id);
    I words[4];
    philox.draw(shr<2>(token), words);
    const M odd = at_least_unsigned(shl<31>(token), iset1(1));
    const M upper = at_least_unsigned(iand(token, iset1(2)), iset1(1));
    const I word = select(upper, select(odd, words[3], words[2]), select(odd, words[1], words[0]));
    best.offer(add(tempered(load(p), set1(max), set1(temperature)), gumbel_of_words(word)), token);
  }
  return best.lowest_id_of_best();
}

}  // namespace stet::STET_ISA
