#include "base/fp.h"
#include "kernels/sample/gumbel_ref.h"
#include "kernels/sample/sample.h"

namespace stet {
namespace {

Argmax argmax(const float* logits, uint32_t n) {
  uint32_t best = 0;
  for (uint32_t i = 0; i < n; ++i) {
    if ((bits_of_float(logits[i]) & 0x7fffffffu) >= 0x7f800000u) return {best, i};
    if (logits[i] > logits[best]) best = i;
  }
  return {best, n};
}

uint64_t weights(const float* logits, uint32_t n, float max, float temperature, uint32_t* out) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < n; ++i) {
    out[i] = static_cast<uint32_t>(exp_ref(tempered_ref(logits[i], max, temperature)) * 0x1p31f);
    sum += out[i];
  }
  return sum;
}

void sort_keys(const float* logits, uint32_t n, uint32_t* keys) {
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t bits = bits_of_float(logits[i] + 0.0f);  // -0 becomes +0
    keys[i] = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  }
}

Tally tally(const uint32_t* keys, uint32_t n, uint32_t at_least) {
  Tally t = {0, 0};
  for (uint32_t i = 0; i < n; ++i)
    if (keys[i] >= at_least) t.sum += keys[i], ++t.count;
  return t;
}

uint32_t compact(const uint32_t* keys, const uint32_t* ids, uint32_t n, uint32_t at_least, uint32_t* out_keys,
                 uint32_t* out_ids) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t key = keys[i], id = ids != nullptr ? ids[i] : i;
    if (key >= at_least) out_keys[kept] = key, out_ids[kept++] = id;
  }
  return kept;
}

void gumbel_noise(const uint32_t* words, uint32_t n, float* noise) {
  for (uint32_t i = 0; i < n; ++i) noise[i] = gumbel_of_word_ref(words[i]);
}

uint32_t gumbel_list(const float* logits, const uint32_t* ids, uint32_t n, float max, float temperature,
                     NoiseStream stream) {
  uint32_t best = ids[0];
  float best_score = -__builtin_inff();
  for (uint32_t i = 0; i < n; ++i) {
    const float score = tempered_ref(logits[i], max, temperature) + gumbel_ref(stream, ids[i]);
    if (score > best_score) best_score = score, best = ids[i];
  }
  return best;
}

uint32_t gumbel_row(const float* logits, uint32_t n, uint32_t argmax, float temperature, NoiseStream stream) {
  uint32_t best = argmax;
  float best_score = -__builtin_inff();
  for (uint32_t i = 0; i < n; ++i) {
    const float score = tempered_ref(logits[i], logits[argmax], temperature) + gumbel_ref(stream, i);
    if (score > best_score) best_score = score, best = i;
  }
  return best;
}

}  // namespace

SampleKernels sample_ref() {
  return {argmax, weights, sort_keys, tally, compact, gumbel_noise, gumbel_row, gumbel_list};
}

}  // namespace stet
