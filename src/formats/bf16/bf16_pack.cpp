#include "formats/float_pack.h"

namespace stet {
namespace {

float decode(uint16_t x) { return bf16_to_f32(x); }

}  // namespace

PackTraits pack_traits_bf16() { return FloatPack<uint16_t, decode>::traits(Format::bf16); }

}  // namespace stet
