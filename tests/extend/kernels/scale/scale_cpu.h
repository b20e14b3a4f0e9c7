// scale for one instruction set: included once by each file of src/kernels/isa.
#pragma once

#include "kernels/scale/scale.h"

namespace stet::STET_ISA {

static inline void scale(const float* x, const float* w, uint32_t k, float* y) {
  uint32_t i = 0;
  for (; i + kLanes <= k; i += kLanes) store(y + i, mul(load(x + i), load(w + i)));
  for (; i < k; ++i) y[i] = x[i] * w[i];
}

}  // namespace stet::STET_ISA
