#include "formats/f16/f16.h"

#include "formats/format_code.h"

namespace stet {
namespace {

void encode_block(const float* in, BlockF16& b) { b.bits = checked_f16(*in, "F16"); }

}  // namespace

FormatCode format_code_f16() { return format_code<BlockF16, decode_block, encode_block>(); }

}  // namespace stet
