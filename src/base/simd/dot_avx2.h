// Dot products of 32 columns without VNNI: maddubs saturates its i16 pair sums, so each function says why its sums fit.
#pragma once

namespace stet::STET_ISA {

// dot_vnni.h says what these compute.
static inline I dot_nibbles(const I w[8], const int8_t* q, I bias) {
  // Eight pair sums of at most 2 * 15 * 127 add up to 30480 in 16 bits.
  __m256i s = _mm256_maddubs_epi16(w[0], bytes4(q));
  STET_UNROLL
  for (int g = 1; g < 8; ++g) s = _mm256_add_epi16(s, _mm256_maddubs_epi16(w[g], bytes4(q + 4 * g)));
  return iadd(_mm256_madd_epi16(s, _mm256_set1_epi16(1)), bias);
}

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
