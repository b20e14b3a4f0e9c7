#include "formats/bf16/bf16.h"

#include "formats/format_code.h"

namespace stet {
namespace {

void encode_block(const float* in, BlockBF16& b) { b.bits = f32_to_bf16(*in); }

}  // namespace

FormatCode format_code_bf16() { return format_code<BlockBF16, decode_block, encode_block>(); }

}  // namespace stet
