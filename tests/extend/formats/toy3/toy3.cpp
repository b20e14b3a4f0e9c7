#include "formats/toy3/toy3.h"

#include <algorithm>

#include "formats/format_code.h"

namespace stet {
namespace {

void encode_block(const float* x, BlockToy3& b) {
  float extreme = 0.0f;
  for (int j = 0; j < 32; ++j) extreme = std::max(extreme, __builtin_fabsf(x[j]));
  const float scale = extreme / 4.0f;
  b.d = checked_f16(scale, "TOY3");
  const float inverse = finite_reciprocal(scale);
  for (int j = 0; j < 32; ++j)
    b.q[j] = static_cast<uint8_t>(4 + std::clamp(static_cast<int>(rint32(x[j] * inverse)), -4, 3));
}

}  // namespace

FormatCode format_code_toy3() { return format_code<BlockToy3, decode_block, encode_block>(); }

}  // namespace stet
