// Dot products of 32 columns without VNNI: maddubs saturates its i16 pair sums, so each function says why its sums fit.
#pragma once

#include "base/simd/dot_sums.h"

namespace stet::STET_ISA {

// dot_vnni.h says what these compute.
template <int kRows, int kVectors>
struct NibbleDots : DotSums<kRows, kVectors> {
  using DotSums<kRows, kVectors>::sum;  // of pairs, in 16 bits: eight of at most 2 * 15 * 127 add up to 30480

  template <typename At>
  void add(const I (&w)[kVectors], const At& at) {
    STET_UNROLL
    for (int c = 0; c < kRows; ++c) {
      const I x = bytes4(at(c));
      STET_UNROLL
      for (int h = 0; h < kVectors; ++h) sum[c][h] = _mm256_add_epi16(sum[c][h], _mm256_maddubs_epi16(w[h], x));
    }
  }
  I total(int row, int vector, I bias) const { return iadd(_mm256_madd_epi16(sum[row][vector], _mm256_set1_epi16(1)), bias); }
};

// Bytes that stand for byte - 128. Products are |w| times (x with the sign of w): a pair sum is at most 2 * 128 * 127 = 32512.
struct SignedBytes {
  I w, magnitude;
  SignedBytes() = default;
  explicit SignedBytes(I bytes) : w(ixor(bytes, iset1(static_cast<int32_t>(0x80808080u)))), magnitude(_mm256_abs_epi8(w)) {}
  I add_product(I sum, I x) const { return dot4(sum, magnitude, _mm256_sign_epi8(x, w)); }  // |-128| is 128 as an unsigned byte
};

// The bias is for the other form.
template <int kRows, int kVectors>
struct OffsetDots : DotSums<kRows, kVectors> {
  using DotSums<kRows, kVectors>::sum;

  template <typename At>
  void add(const I (&bytes)[kVectors], const At& at) {
    SignedBytes w[kVectors];
    STET_UNROLL
    for (int h = 0; h < kVectors; ++h) w[h] = SignedBytes(bytes[h]);
    STET_UNROLL
    for (int c = 0; c < kRows; ++c) {
      const I x = bytes4(at(c));
      STET_UNROLL
      for (int h = 0; h < kVectors; ++h) sum[c][h] = w[h].add_product(sum[c][h], x);
    }
  }
  I total(int row, int vector, I) const { return sum[row][vector]; }
};

constexpr int kDotRows = 4;

struct OffsetBytes {
  SignedBytes w[8];
  explicit OffsetBytes(const uint8_t* codes) {
    STET_UNROLL
    for (int g = 0; g < 8; ++g) w[g] = SignedBytes(iload(codes + g * 64));
  }
  I dot(const int8_t* q, I) const {
    I s = izero();
    STET_UNROLL
    for (int g = 0; g < 8; ++g) s = w[g].add_product(s, bytes4(q + 4 * g));
    return s;
  }
};

}  // namespace stet::STET_ISA
