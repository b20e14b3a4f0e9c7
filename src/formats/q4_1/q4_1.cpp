#include "formats/q4_1/q4_1.h"

#include <algorithm>

#include "formats/format_code.h"

namespace stet {
namespace {

// REQUIRES: finite elements. Throws Error(kInput) when the scale or the minimum does not fit f16.
void encode_block(const float* x, BlockQ4_1& b) {
  const auto [lowest, highest] = std::minmax_element(x, x + 32);
  const float minimum = *lowest;
  const float scale = (*highest - minimum) / 15.0f;
  b.d = checked_f16(scale, "Q4_1");
  b.m = checked_f16(minimum, "Q4_1");
  const float inverse = finite_reciprocal(scale);
  const auto code = [&](float v) { return std::min(15, static_cast<int>((v - minimum) * inverse + 0.5f)); };
  for (int j = 0; j < 16; ++j) b.qs[j] = static_cast<uint8_t>(code(x[j]) | code(x[j + 16]) << 4);
}

}  // namespace

FormatCode format_code_q4_1() { return format_code<BlockQ4_1, decode_block, encode_block>(); }

}  // namespace stet
