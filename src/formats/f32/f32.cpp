#include "formats/f32/f32.h"

#include "formats/format_code.h"

namespace stet {
namespace {

void encode_block(const float* in, BlockF32& b) { b.x = *in; }

}  // namespace

FormatCode format_code_f32() { return format_code<BlockF32, decode_block, encode_block>(); }

}  // namespace stet
