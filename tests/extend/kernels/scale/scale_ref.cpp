#include "kernels/scale/scale.h"

namespace stet {

void scale_ref(const float* x, const float* w, uint32_t k, float* y) {
  for (uint32_t i = 0; i < k; ++i) y[i] = x[i] * w[i];
}

}  // namespace stet
