// What a published checkpoint of DeepSeek V4 rounds its activations to (inference/kernel.py of the published
// repository).
//
// bf16: to nearest even, as everywhere.
// e4m3 groups: for `group` neighbours (the last group of a run may be shorter), a = max(max|x|, 1e-4), s the least
// power
//   of two not below a / 448, y = e4m3(x / s) * s. e4m3: 4 significant bits, nearest even, spacing 2^-9 below 2^-6.
// e2m1 groups of 32: a = max(max|x|, 6 * 2^-126), s the least power of two not below a / 6, y = e2m1(x / s) * s with
//   e2m1 one of 0, .5, 1, 1.5, 2, 3, 4, 6, nearest even.
// Hadamard: Sylvester's matrix times x, in log2(n) rounds of sums and differences of elements 1, 2, 4, ... apart, then
//   times the f32 nearest to n^-0.5.
// A group that holds a value that is not finite becomes NaN. Guarantee: exact.
#pragma once

#include <cstdint>

#include "base/fp.h"

namespace stet {

constexpr uint32_t kCacheGroup = 64;    // elements of a cached row that share a scale
constexpr uint32_t kIndexGroup = 32;    // of the indexer's queries and keys

// In place, of n elements.
static inline void round_bf16(float* x, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) x[i] = rounded_bf16(x[i]);
}
// y may be x.
void round_e4m3_ref(const float* x, uint32_t n, uint32_t group, float* y);
void round_e2m1_ref(const float* x, uint32_t n, float* y);
// In place. REQUIRES: n a power of two.
void hadamard_ref(float* x, uint32_t n);

// A row of the cache, in place: e4m3 groups of kCacheGroup but for the last rope_dim elements, which are rounded to
// bf16.
void round_cached(float* x, uint32_t n, uint32_t rope_dim);
// What an indexer compares, in place: bf16, Hadamard, bf16, e2m1.
void round_indexed(float* x, uint32_t n);

}  // namespace stet
