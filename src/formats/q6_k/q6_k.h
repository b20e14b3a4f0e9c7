// Q6_K: 256 elements in 210 bytes: 16 sub-blocks of 16, each with a signed 8-bit multiple of one f16 scale.
//
//   byte   0..127  ql[128]  low 4 bits of q
//   byte 128..191  qh[64]   high 2 bits of q, four elements a byte
//   byte 192..207  sc[16]   sub-scale of elements 16s .. 16s + 15
//   byte 208..209  d        f16 super scale
//
// The block is two halves of 128 elements, each with 64 bytes of ql and 32 of qh. Element 32k + l of a half (k = 0..3,
// l = 0..31):
//
//   k   low bits            high bits
//   0   ql[l]      & 15     qh[l]      & 3
//   1   ql[l + 32] & 15     qh[l] >> 2 & 3
//   2   ql[l]      >> 4     qh[l] >> 4 & 3
//   3   ql[l + 32] >> 4     qh[l] >> 6
//
// x = (d * float(sc)) * float(q - 32), two roundings: the scale, then the product.
// Encode is our own (the published one searches scales, which no formula reproduces): the extreme element of a
// sub-block becomes q - 32 = -32, sub-scales are rounded to multiples of the largest / 127, then q = x / (d * sc) to
// nearest even, in -32..31.
#pragma once

#include <cstdint>

#include "base/fp.h"

namespace stet {

struct BlockQ6_K {
  static constexpr uint32_t kElements = 256;
  static constexpr bool kIntegerBlock = true;
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t sc[16];
  uint16_t d;
};
static_assert(sizeof(BlockQ6_K) == 210);

// The six bits of element i (0..255), 0..63; its value is get_q6(b, i) - 32 times the scale of sub-block i / 16.
static inline int get_q6(const BlockQ6_K& b, int i) {
  const int half = i >> 7, k = (i >> 5) & 3, l = i & 31;
  const int low = b.ql[64 * half + 32 * (k & 1) + l] >> (k & 2 ? 4 : 0) & 15;
  return low | (b.qh[32 * half + l] >> (2 * k) & 3) << 4;
}

static inline void decode_block(const BlockQ6_K& b, float* out) {
  const float super = f16_to_f32(b.d);
  for (int i = 0; i < 256; ++i) {
    const float scale = super * static_cast<float>(b.sc[i >> 4]);
    out[i] = scale * static_cast<float>(get_q6(b, i) - 32);
  }
}

}  // namespace stet
