#include "kernels/common/norm_ref.h"
#include "kernels/rmsnorm/rmsnorm.h"

namespace stet {

void rmsnorm_ref(const float* x, const float* w, float eps, uint32_t k, float* y) {
  const float r = inverse_rms_ref(x, k, eps);
  for (uint32_t i = 0; i < k; ++i) y[i] = (x[i] * r) * w[i];
}

}  // namespace stet
