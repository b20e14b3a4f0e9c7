// Heads that are normed and turned at their end.
//
// unit norm: y = x * r, r = 1 / sqrt(mean(x^2) + eps) in rmsnorm's order; no weight.
// unit norm of a checkpoint: every step rounded to bf16: q = bf16(x^2), s = bf16(mean(q)), r = bf16(1 / sqrt(bf16(s +
// eps))),
//   y = bf16(x * r); the sum of q in 256 lanes (d mod 256), in d order, folded in halves.
// tail rotation: the last rope_dim elements are pairs of neighbours; y0 = x0 * cos + x1 * (-sin), y1 = x1 * cos + x0 *
// sin, as rope has
//   it; the inverse turns back: the sines with the other sign. Elements before pass through.
// Guarantee: exact.
#pragma once

#include <cstdint>

#include "kernels/attend/attend.h"

namespace stet {

// y may be x.
void unit_head_ref(const float* x, uint32_t dim, float eps, float* y);
void unit_head_bf16_ref(const float* x, uint32_t dim, float eps, float* y);
// In place.
void rotate_tail_ref(float* x, uint32_t dim, RopeRow row, uint32_t rope_dim, bool inverse);

}  // namespace stet
