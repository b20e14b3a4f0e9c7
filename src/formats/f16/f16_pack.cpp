#include "formats/float_pack.h"

namespace stet {
namespace {

float decode(uint16_t x) { return f16_to_f32(x); }

}  // namespace

PackTraits pack_traits_f16() { return FloatPack<uint16_t, decode>::traits(Format::f16); }

}  // namespace stet
