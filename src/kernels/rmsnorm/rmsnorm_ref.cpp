#include "kernels/rmsnorm/rmsnorm.h"

#include <emmintrin.h>

#include "base/fp.h"

namespace stet {

void rmsnorm_ref(const float* x, const float* w, float eps, uint32_t k, float* y) {
  float lanes[256] = {};
  for (uint32_t i = 0; i < k; ++i) lanes[i % 256] = fma32(x[i], x[i], lanes[i % 256]);
  for (int width = 128; width >= 1; width /= 2)
    for (int i = 0; i < width; ++i) lanes[i] = lanes[i] + lanes[i + width];
  const float mean = lanes[0] / static_cast<float>(k);
  // The instruction is correctly rounded and needs no libm.
  const float root = _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + eps)));
  const float r = 1.0f / root;
  for (uint32_t i = 0; i < k; ++i) y[i] = (x[i] * r) * w[i];
}

}  // namespace stet
