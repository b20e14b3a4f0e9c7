// Gumbel noise on a device, operation by operation that of gumbel_ref.h.
#pragma once

#include "base/philox.h"
#include "kernels/cuda/math.cuh"
#include "kernels/sample/sample.h"

namespace stet::cuda {

__device__ __forceinline__ float unit_of(uint32_t r) {
  const float high = __fmul_rn(static_cast<float>(r >> 16), 65536.0f);
  const float low = __fadd_rn(static_cast<float>(r & 0xffffu), 0.5f);
  return __fmul_rn(__fadd_rn(high, low), 0x1p-32f);
}

__device__ __forceinline__ float log_exact(float x) {
  const int32_t bits = __float_as_int(x), e = (bits - kSqrtHalfBits) >> 23;
  const float m = __uint_as_float(static_cast<uint32_t>(bits) - (static_cast<uint32_t>(e) << 23));
  return log_ratio(static_cast<float>(e), __fsub_rn(m, 1.0f), __fadd_rn(m, 1.0f));
}

__device__ __forceinline__ float gumbel_of_word(uint32_t r) {
  const float u = unit_of(r);
  float e;
  if (u >= kSqrtHalf) {
    const float w = unit_of(~r);
    e = __fsub_rn(0.0f, log_ratio(0.0f, __fsub_rn(0.0f, w), __fsub_rn(2.0f, w)));
  } else {
    e = __fsub_rn(0.0f, log_exact(u));
  }
  return __fsub_rn(0.0f, log_exact(e));
}

// The words of ids 4 * quad .. 4 * quad + 3.
__device__ __forceinline__ Philox gumbel_words(uint64_t seed, uint64_t position, uint32_t quad) {
  return philox4x32({{static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), quad, kGumbelStream}},
                    static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
}

}  // namespace stet::cuda
