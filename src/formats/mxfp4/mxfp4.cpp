#include "formats/mxfp4/mxfp4.h"

#include "formats/format_code.h"

namespace stet {
namespace {

// |x| <= 6, to nearest even: steps of a half up to 2, of 1 up to 4, of 2 up to 6.
int nibble_of(float x) {
  const float a = __builtin_fabsf(x);
  const float code = a < 2.0f ? rint32(2.0f * a) : a < 4.0f ? rint32(a) + 2.0f : rint32(0.5f * a) + 4.0f;
  return static_cast<int>(code) | (bits_of_float(x) >> 31 ? 8 : 0);
}

void encode_block(const float* x, BlockMxfp4& b) {
  const int exponent = block_exponent(x, 32, kLargestE2M1, "MXFP4");
  b.scale = static_cast<uint8_t>(exponent + 127);
  const float inverse = power_of_two(-exponent);
  for (int j = 0; j < 16; ++j)
    b.qs[j] = static_cast<uint8_t>(nibble_of(x[j] * inverse) | nibble_of(x[j + 16] * inverse) << 4);
}

}  // namespace

FormatCode format_code_mxfp4() { return format_code<BlockMxfp4, decode_block, encode_block>(); }

}  // namespace stet
