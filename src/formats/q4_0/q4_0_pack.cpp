#include "formats/nibble_pack.h"
#include "formats/q4_0/q4_0.h"

namespace stet {

PackTraits pack_traits_q4_0() { return NibblePack<BlockQ4_0, false, 8>::traits(Format::q4_0); }

}  // namespace stet
