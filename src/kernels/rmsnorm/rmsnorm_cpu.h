// rmsnorm for one instruction set: included once by each file of src/kernels/isa.
#pragma once

#include "base/fp.h"
#include "kernels/common/math_cpu.h"
#include "kernels/rmsnorm/rmsnorm.h"

namespace stet::STET_ISA {

static inline void rmsnorm(const float* x, const float* w, float eps, uint32_t k, float* y) {
  constexpr int kVectors = 256 / kLanes;
  F sum[kVectors];
  STET_UNROLL
  for (F& s : sum) s = zero();
  uint32_t i = 0;
  for (; i + 256 <= k; i += 256)
    STET_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      const F v = load(x + i + static_cast<uint32_t>(j) * kLanes);
      sum[j] = fma(v, v, sum[j]);
    }
  alignas(64) float lanes[256];
  STET_UNROLL
  for (int j = 0; j < kVectors; ++j) store(lanes + j * kLanes, sum[j]);
  for (uint32_t l = 0; i < k; ++i, ++l) lanes[l] = fma32(x[i], x[i], lanes[l]);
  for (int width = 128; width >= 16; width /= 2)
    for (int l = 0; l < width; l += kLanes) store(lanes + l, add(load(lanes + l), load(lanes + l + width)));
  const float mean = fold16(lanes) / static_cast<float>(k);
  const float root = _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + eps)));
  const float r = 1.0f / root;
  for (i = 0; i + kLanes <= k; i += kLanes) store(y + i, mul(mul(load(x + i), set1(r)), load(w + i)));
  for (; i < k; ++i) y[i] = (x[i] * r) * w[i];
}

}  // namespace stet::STET_ISA
