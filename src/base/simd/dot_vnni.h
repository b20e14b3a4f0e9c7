// Dot products of 32 columns with VNNI, for either width.
#pragma once

#include "base/simd/dot_sums.h"

namespace stet::STET_ISA {

// Dot products of kRows rows of x with weights that come four columns at a time, as kVectors vectors of rows: what is loaded of x serves all
// of them. Exact.
template <int kRows, int kVectors>
struct NibbleDots : DotSums<kRows, kVectors> {
  using DotSums<kRows, kVectors>::sum;

  // w: codes below 16. at(row): the row's x, of the same columns.
  template <typename At>
  void add(const I (&w)[kVectors], const At& at) {
    STET_UNROLL
    for (int c = 0; c < kRows; ++c) {
      const I x = bytes4(at(c));
      STET_UNROLL
      for (int h = 0; h < kVectors; ++h) sum[c][h] = dot4(sum[c][h], w[h], x);
    }
  }
  // bias: what the codes' offset takes away.
  I total(int row, int vector, I bias) const { return iadd(sum[row][vector], bias); }
};

// The same with bytes that stand for byte - 128; the bias is -128 * sum(x).
template <int kRows, int kVectors>
using OffsetDots = NibbleDots<kRows, kVectors>;

// Rows for which sums, weights and x have room in the registers.
constexpr int kDotRows = kLanes == 8 ? 4 : 8;

// 32 columns of bytes that stand for byte - 128, [g = 0..7][row][4 columns] with 64 bytes from one g to the next.
struct OffsetBytes {
  I w[8];
  explicit OffsetBytes(const uint8_t* codes) {
    STET_UNROLL
    for (int g = 0; g < 8; ++g) {
      w[g] = iload(codes + g * 64);
      keep_in_register(w[g]);
    }
  }
  // The dot products with q[0..31], given -128 * sum(q) in every lane. Exact.
  I dot(const int8_t* q, I bias128) const {
    I s = bias128;
    STET_UNROLL
    for (int g = 0; g < 8; ++g) s = dot4(s, w[g], bytes4(q + 4 * g));
    return s;
  }
};

}  // namespace stet::STET_ISA
