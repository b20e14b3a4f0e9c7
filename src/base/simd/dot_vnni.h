// Dot products of 32 columns with VNNI, for either width.
#pragma once

namespace stet::STET_ISA {

// bias + the dot products of 32 codes of 4 bits (w[g]: columns 4g .. 4g + 3 of each lane's row) and q[0..31]. Exact.
static inline I dot_nibbles(const I w[8], const int8_t* q, I bias) {
  I s = bias;
  STET_UNROLL
  for (int g = 0; g < 8; ++g) s = dot4(s, w[g], bytes4(q + 4 * g));
  return s;
}

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
