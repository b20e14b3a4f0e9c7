// swiglu: y = silu(gate) * up, silu(x) = x / (1 + exp(-x)), every operation rounded. Guarantee: exact.
#pragma once

#include <cstdint>

namespace stet {

// n floats each, n a multiple of 16.
using SwigluFn = void (*)(const float* gate, const float* up, uint32_t n, float* y);

void swiglu_ref(const float* gate, const float* up, uint32_t n, float* y);

}  // namespace stet
