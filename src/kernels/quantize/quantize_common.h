// What the reference and the vector code share: the scale of a block, and the fields that follow from its codes.
#pragma once

#include "base/fp.h"
#include "formats/e4m3/e4m3.h"
#include "kernels/quantize/quantize.h"

namespace stet {

struct BlockScale {
  float d;        // as stored
  float inverse;  // multiplies x; 0 where every code is 0
};

// max_bits: the largest of the elements' bit patterns without their signs.
STET_BOTH static inline BlockScale block_scale(uint32_t max_bits) {
  if (max_bits >= 0x7f800000u) return {float_of_bits(0x7fc00000u), 0.0f};
  const float a = float_of_bits(max_bits);
  if (a <= kQuantizeFloor) return {0.0f, 0.0f};
  return {a / 127.0f, 127.0f / a};
}

// The largest of the elements' bit patterns without their signs.
STET_BOTH static inline uint32_t largest_bits(const float* x, uint32_t n) {
  uint32_t bits = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t here = bits_of_float(x[i]) & 0x7fffffffu;
    if (here > bits) bits = here;
  }
  return bits;
}

// The scale and its inverse of a group whose codes reach up to `limit`: the least power of two that holds the largest,
// which counts as `floor` where it is smaller.
STET_BOTH static inline BlockScale power_scale(uint32_t max_bits, float floor, float limit) {
  if (max_bits >= 0x7f800000u) return {float_of_bits(0x7fc00000u), 0.0f};
  const float a = float_of_bits(max_bits);
  const int e = exponent_above(a > floor ? a : floor, limit);
  return {power_of_two(e), power_of_two(-e)};
}

// The same of a group of kind e4m3.
STET_BOTH static inline BlockScale plane_scale(uint32_t max_bits) {
  return power_scale(max_bits, kPlaneFloor, kLargestE4M3);
}

static inline void finish_record(const ActRecord& record, uint32_t c, float d, int32_t sum_low, int32_t sum_high) {
  const int32_t sum = sum_low + sum_high;
  record.d()[c] = d;
  record.scaled_sum()[c] = d * static_cast<float>(sum);
  record.bias8()[c] = -8 * sum;
  record.bias128()[c] = -128 * sum;
  record.bias32_low()[c] = -32 * sum_low;
  record.bias32_high()[c] = -32 * sum_high;
}

static inline void copy_row(const float* x, uint32_t row, const Activations& out) {
  Activations a = out;
  const uint32_t cols = a.group_cols(row / kGroup);
  float* group = reinterpret_cast<float*>(a.group(row / kGroup)) + row % kGroup;
  for (uint32_t k = 0; k < a.k; ++k) group[size_t{k} * cols] = x[k];
}

}  // namespace stet
