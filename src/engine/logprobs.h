// Log-probabilities of a row of logits, for those who ask.
#pragma once

#include <span>

#include "stet/engine.h"

namespace stet {

// logits: (vocab). The chosen token and the `top` most probable ones, ties to the lower id. In double precision with the routines
// of base/dmath.h, so that the figures do not depend on compiler or machine.
PositionLogprobs position_logprobs(std::span<const float> logits, int32_t chosen, uint32_t top);

}  // namespace stet
