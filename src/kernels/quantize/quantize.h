// quantize: f32 rows to the form a matrix-vector product reads.
//
// i8 (a8, docs/numerics.md 3.1), per block of 32: a = max|x|; a non-finite element gives d = NaN, q = 0; a <= 2^-60
// gives d = 0, q = 0; else d = a / 127, q = clamp(rint_even(x * (127 / a)), -127, 127). e4m3 (3.3), per group of 128
// (the last may be shorter): a = max(|x|, 1e-4); a non-finite element gives d = NaN, values 0; else d is the least
// power of two not below a / 448, values are e4m3(x / d), to nearest even. f32: copied. Guarantee: exact. Limits: i8
// and e4m3: K % 32 == 0.
#pragma once

#include "kernels/common/activations.h"

namespace stet {

constexpr float kQuantizeFloor = 0x1p-60f;
constexpr uint32_t kPlaneGroup = 128;  // elements that share a scale of kind e4m3
constexpr float kPlaneFloor = 1e-4f;

// Row `row` of `out` from x[0 .. out.k).
using QuantizeFn = void (*)(const float* x, uint32_t row, const Activations& out);

void quantize_ref(const float* x, uint32_t row, const Activations& out);

}  // namespace stet
