#include "formats/nibble_pack.h"
#include "formats/q4_1/q4_1.h"

namespace stet {

PackTraits pack_traits_q4_1() { return NibblePack<BlockQ4_1, true, 0>::traits(Format::q4_1); }

}  // namespace stet
