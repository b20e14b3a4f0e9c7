#include "formats/q8_0/q8_0.h"

#include <algorithm>

#include "formats/format_code.h"

namespace stet {
namespace {

// |v| <= 127.5: v - float(whole) is exact.
int round_half_away(float v) {
  const int whole = static_cast<int>(v);
  const float rest = v - static_cast<float>(whole);
  if (rest >= 0.5f) return whole + 1;
  return rest <= -0.5f ? whole - 1 : whole;
}

// REQUIRES: finite elements. Throws Error(kInput) when the scale does not fit f16.
void encode_block(const float* x, BlockQ8_0& b) {
  float extreme = 0.0f;
  for (int j = 0; j < 32; ++j) extreme = std::max(extreme, __builtin_fabsf(x[j]));
  const float scale = extreme / 127.0f;
  b.d = checked_f16(scale, "Q8_0");
  const float inverse = finite_reciprocal(scale);
  for (int j = 0; j < 32; ++j) b.q[j] = static_cast<int8_t>(round_half_away(x[j] * inverse));
}

}  // namespace

FormatCode format_code_q8_0() { return format_code<BlockQ8_0, decode_block, encode_block>(); }

}  // namespace stet
