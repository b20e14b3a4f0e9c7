// swiglu for one instruction set: included once by each file of src/kernels/isa.
#pragma once

#include "kernels/common/math_cpu.h"
#include "kernels/swiglu/swiglu.h"

namespace stet::STET_ISA {

static inline void swiglu(const float* gate, const float* up, uint32_t n, float* y) {
  for (uint32_t i = 0; i < n; i += kLanes) store(y + i, mul(silu(load(gate + i)), load(up + i)));
}

}  // namespace stet::STET_ISA
