// A short list that still runs every kernel of a long one: of stages that are alike (kind, formats, shapes) only the first. A model's
// layers are alike, so this is about one layer. It is for warming and comparing; what it computes means nothing.
#pragma once

#include "replay/lowered.h"

namespace stet {

// fused: any lowering of a list.
LoweredList sample_stages(const LoweredList& fused);
// The stages of `eager`, another lowering of the same list, that hold the commands of `sample`.
LoweredList same_commands(const LoweredList& eager, const LoweredList& sample);

}  // namespace stet
