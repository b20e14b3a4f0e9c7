#include "formats/e4m3/e4m3.h"

#include "formats/format_code.h"

namespace stet {
namespace {

void encode_block(const float* x, BlockE4M3& b) {
  const int exponent = block_exponent(x, 128, kLargestE4M3, "F8_E4M3");
  b.scale = static_cast<uint8_t>(exponent + 127);
  for (int j = 0; j < 128; ++j) b.codes[j] = f32_to_e4m3(x[j] * power_of_two(-exponent));
}

}  // namespace

FormatCode format_code_e4m3() { return format_code<BlockE4M3, decode_block, encode_block>(); }

}  // namespace stet
