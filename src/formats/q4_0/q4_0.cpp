#include "formats/q4_0/q4_0.h"

#include <algorithm>

#include "formats/format_code.h"

namespace stet {
namespace {

// REQUIRES: finite elements. Throws Error(kInput) when the scale does not fit f16.
void encode_block(const float* x, BlockQ4_0& b) {
  float extreme = 0.0f;
  for (int j = 0; j < 32; ++j)
    if (__builtin_fabsf(x[j]) > __builtin_fabsf(extreme)) extreme = x[j];
  const float scale = extreme / -8.0f;
  b.d = checked_f16(scale, "Q4_0");
  const float inverse = finite_reciprocal(scale);
  const auto code = [&](float v) { return std::min(15, static_cast<int>(v * inverse + 8.5f)); };
  for (int j = 0; j < 16; ++j) b.qs[j] = static_cast<uint8_t>(code(x[j]) | code(x[j + 16]) << 4);
}

}  // namespace

FormatCode format_code_q4_0() { return format_code<BlockQ4_0, decode_block, encode_block>(); }

}  // namespace stet
