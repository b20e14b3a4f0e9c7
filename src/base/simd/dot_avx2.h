// Dot products of 32 columns without VNNI: maddubs saturates its i16 pair sums, so each function says why its sums fit.
#pragma once

namespace stet::STET_ISA {

// dot_vnni.h says what these compute.
template <int kRows, int kVectors>
struct NibbleDots {
  I sum[kRows][kVectors];  // of pairs, in 16 bits: eight of at most 2 * 15 * 127 add up to 30480

  NibbleDots() {
    STET_UNROLL
    for (auto& row : sum)
      STET_UNROLL
      for (I& s : row) s = izero();
  }
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

// |w| times (x with the sign of w): a pair sum is at most 2 * 128 * 127 = 32512. The bias is for the other form.
template <int kRows, int kVectors>
struct OffsetDots {
  I sum[kRows][kVectors];

  OffsetDots() {
    STET_UNROLL
    for (auto& row : sum)
      STET_UNROLL
      for (I& s : row) s = izero();
  }
  template <typename At>
  void add(const I (&bytes)[kVectors], const At& at) {
    I w[kVectors], magnitude[kVectors];
    STET_UNROLL
    for (int h = 0; h < kVectors; ++h) {
      w[h] = ixor(bytes[h], iset1(static_cast<int32_t>(0x80808080u)));
      magnitude[h] = _mm256_abs_epi8(w[h]);  // |-128| is 128 as an unsigned byte
    }
    STET_UNROLL
    for (int c = 0; c < kRows; ++c) {
      const I x = bytes4(at(c));
      STET_UNROLL
      for (int h = 0; h < kVectors; ++h) sum[c][h] = dot4(sum[c][h], magnitude[h], _mm256_sign_epi8(x, w[h]));
    }
  }
  I total(int row, int vector, I) const { return sum[row][vector]; }
};

constexpr int kDotRows = 4;

struct OffsetBytes {
  I w[8];
  I magnitude[8];
  explicit OffsetBytes(const uint8_t* codes) {
    STET_UNROLL
    for (int g = 0; g < 8; ++g) {
      w[g] = ixor(iload(codes + g * 64), iset1(static_cast<int32_t>(0x80808080u)));
      magnitude[g] = _mm256_abs_epi8(w[g]);  // |-128| is 128 as an unsigned byte
    }
  }
  // |w| times (q with the sign of w): a pair sum is at most 2 * 128 * 127 = 32512. The bias is for the other form.
  I dot(const int8_t* q, I) const {
    I s = izero();
    STET_UNROLL
    for (int g = 0; g < 8; ++g) s = dot4(s, magnitude[g], _mm256_sign_epi8(bytes4(q + 4 * g), w[g]));
    return s;
  }
};

}  // namespace stet::STET_ISA
