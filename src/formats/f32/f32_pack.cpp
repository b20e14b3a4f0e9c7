#include "formats/float_pack.h"

namespace stet {
namespace {

float decode(float x) { return x; }

}  // namespace

PackTraits pack_traits_f32() { return FloatPack<float, decode>::traits(Format::f32); }

}  // namespace stet
