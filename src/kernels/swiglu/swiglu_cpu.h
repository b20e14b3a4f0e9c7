// swiglu for one instruction set: included once by each file of src/kernels/isa.
#pragma once

#include "kernels/common/math_cpu.h"
#include "kernels/swiglu/swiglu.h"

namespace stet::STET_ISA {

static inline void swiglu(const float* gate, const float* up, uint32_t n, float* y) {
  uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, mul(silu(load(gate + i)), load(up + i)));
  if (i == n) return;
  alignas(64) float tail[3][kLanes] = {};
  for (uint32_t j = i; j < n; ++j) tail[0][j - i] = gate[j], tail[1][j - i] = up[j];
  store(tail[2], mul(silu(load(tail[0])), load(tail[1])));
  for (uint32_t j = i; j < n; ++j) y[j] = tail[2][j - i];
}

}  // namespace stet::STET_ISA
