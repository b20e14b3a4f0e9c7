// A block of 32 quantised by a warp, bits as kernels/quantize/quantize.h.
#pragma once

#include "base/cuda/device.cuh"
#include "kernels/quantize/quantize.h"

namespace stet::cuda {

struct QuantizedLane {
  float d;       // of the block
  int32_t code;  // of this lane's element
};

__device__ __forceinline__ QuantizedLane quantize_lane(float x) {
  const uint32_t largest = __reduce_max_sync(kAll, __float_as_uint(x) & 0x7fffffffu);
  if (largest >= 0x7f800000u) return {__uint_as_float(0x7fc00000u), 0};
  const float a = __uint_as_float(largest);
  if (a <= kQuantizeFloor) return {0.0f, 0};
  const float code = rintf(__fmul_rn(x, __fdiv_rn(127.0f, a)));
  return {__fdiv_rn(a, 127.0f), static_cast<int32_t>(fminf(127.0f, fmaxf(-127.0f, code)))};
}

}  // namespace stet::cuda
