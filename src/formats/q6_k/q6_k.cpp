#include "formats/q6_k/q6_k.h"

#include <algorithm>

#include "formats/format_code.h"

namespace stet {
namespace {

// REQUIRES: the element's bits are zero.
void set_q6(BlockQ6_K& b, int i, int q) {
  const int half = i >> 7, k = (i >> 5) & 3, l = i & 31;
  b.ql[64 * half + 32 * (k & 1) + l] |= static_cast<uint8_t>((q & 15) << (k & 2 ? 4 : 0));
  b.qh[32 * half + l] |= static_cast<uint8_t>((q >> 4) << (2 * k));
}

// REQUIRES: finite elements. Throws Error(kInput) when the scale does not fit f16.
void encode_block(const float* x, BlockQ6_K& b) {
  float sub[16];
  float largest = 0.0f;
  for (int s = 0; s < 16; ++s) {
    float extreme = 0.0f;
    for (int j = 16 * s; j < 16 * s + 16; ++j)
      if (__builtin_fabsf(x[j]) > __builtin_fabsf(extreme)) extreme = x[j];
    sub[s] = extreme / -32.0f;
    largest = std::max(largest, __builtin_fabsf(sub[s]));
  }
  b.d = checked_f16(largest / 127.0f, "Q6_K");
  const float super = f16_to_f32(b.d);
  const float inverse = finite_reciprocal(super);
  std::fill(b.ql, b.ql + 128, uint8_t{0});
  std::fill(b.qh, b.qh + 64, uint8_t{0});
  for (int s = 0; s < 16; ++s) {
    b.sc[s] = static_cast<int8_t>(rint32(std::clamp(sub[s] * inverse, -127.0f, 127.0f)));
    const float scale_inverse = finite_reciprocal(super * static_cast<float>(b.sc[s]));
    for (int j = 16 * s; j < 16 * s + 16; ++j)
      set_q6(b, j, 32 + static_cast<int>(rint32(std::clamp(x[j] * scale_inverse, -32.0f, 31.0f))));
  }
}

}  // namespace

FormatCode format_code_q6_k() { return format_code<BlockQ6_K, decode_block, encode_block>(); }

}  // namespace stet
