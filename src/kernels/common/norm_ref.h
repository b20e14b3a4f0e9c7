// What norms share, scalar.
#pragma once

#include <emmintrin.h>

#include <cstdint>

#include "base/fp.h"

namespace stet {

// 1 / sqrt(mean(x^2) + eps) in the order of docs/numerics.md section 4: 256 lanes (k mod 256), fma in k order, folded
// in halves.
static inline float inverse_rms_ref(const float* x, uint32_t k, float eps) {
  float lanes[256] = {};
  for (uint32_t i = 0; i < k; ++i) lanes[i % 256] = fma32(x[i], x[i], lanes[i % 256]);
  for (int width = 128; width >= 1; width /= 2)
    for (int i = 0; i < width; ++i) lanes[i] = lanes[i] + lanes[i + width];
  const float mean = lanes[0] / static_cast<float>(k);
  // The instruction is correctly rounded and needs no libm.
  return 1.0f / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + eps)));
}

// Eight partial sums (d mod 8), fma in d order, and their tree: the product of a query and a key.
static inline float dot8_ref(const float* a, const float* b, uint32_t n) {
  float p[8] = {};
  for (uint32_t d = 0; d < n; ++d) p[d % 8] = fma32(a[d], b[d], p[d % 8]);
  return ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
}

}  // namespace stet
