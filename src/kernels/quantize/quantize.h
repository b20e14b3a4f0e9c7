// quantize: f32 rows to the form a matrix-vector product reads.
//
// i8 (a8, docs/numerics.md 3.1), per block of 32: a = max|x|; a non-finite element gives d = NaN, q = 0; a <= 2^-60 gives
// d = 0, q = 0; else d = a / 127, q = clamp(rint_even(x * (127 / a)), -127, 127).
// f32: copied.
// Guarantee: exact. Limits: i8: K % 32 == 0.
#pragma once

#include "kernels/common/activations.h"

namespace stet {

constexpr float kQuantizeFloor = 0x1p-60f;

// Row `row` of `out` from x[0 .. out.k).
using QuantizeFn = void (*)(const float* x, uint32_t row, const Activations& out);

void quantize_ref(const float* x, uint32_t row, const Activations& out);

}  // namespace stet
