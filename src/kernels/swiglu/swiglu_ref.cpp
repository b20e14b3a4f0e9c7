#include "kernels/swiglu/swiglu.h"

#include "kernels/common/math_ref.h"

namespace stet {

void swiglu_ref(const float* gate, const float* up, uint32_t n, float* y) {
  for (uint32_t i = 0; i < n; ++i) y[i] = silu_ref(gate[i]) * up[i];
}

}  // namespace stet
