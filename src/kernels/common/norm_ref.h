// The reference of what norms share.
#pragma once

#include <emmintrin.h>

#include <cstdint>

#include "base/fp.h"

namespace stet {

// Correctly rounded, without libm: the instruction is.
static inline float sqrt_ref(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

// The sum of 256 lanes, folded in halves. They are overwritten.
static inline float fold_lanes_ref(float* lanes) {
  for (int width = 128; width >= 1; width /= 2)
    for (int i = 0; i < width; ++i) lanes[i] = lanes[i] + lanes[i + width];
  return lanes[0];
}

// 1 / sqrt(mean(x^2) + eps) in the order of docs/numerics.md section 4: 256 lanes (k mod 256), fma in k order, folded
// in halves.
static inline float inverse_rms_ref(const float* x, uint32_t k, float eps) {
  float lanes[256] = {};
  for (uint32_t i = 0; i < k; ++i) lanes[i % 256] = fma32(x[i], x[i], lanes[i % 256]);
  return 1.0f / sqrt_ref(fold_lanes_ref(lanes) / static_cast<float>(k) + eps);
}

}  // namespace stet
