// swiglu: y = silu(gate) * up, silu(x) = x / (1 + exp(-x)), every operation rounded. Guarantee: exact.
#pragma once

#include <cstdint>

namespace stet {

// n floats each; y may be gate.
using SwigluFn = void (*)(const float* gate, const float* up, uint32_t n, float* y);

void swiglu_ref(const float* gate, const float* up, uint32_t n, float* y);

}  // namespace stet
