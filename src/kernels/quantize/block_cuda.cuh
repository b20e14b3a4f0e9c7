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

// The same by eight lanes, four elements each. Every lane of the warp takes part.
struct QuantizedQuad {
  float d;
  int32_t code[4];
};

// Four codes in a word.
__device__ __forceinline__ uint32_t packed_codes(const QuantizedQuad& q) {
  return static_cast<uint32_t>(q.code[0] & 255) | static_cast<uint32_t>(q.code[1] & 255) << 8 |
         static_cast<uint32_t>(q.code[2] & 255) << 16 | static_cast<uint32_t>(q.code[3]) << 24;
}

__device__ __forceinline__ QuantizedQuad quantize_quad(float4 x) {
  const float v[4] = {x.x, x.y, x.z, x.w};
  uint32_t largest = 0;
#pragma unroll
  for (int j = 0; j < 4; ++j) largest = max(largest, __float_as_uint(v[j]) & 0x7fffffffu);
#pragma unroll
  for (int distance = 1; distance < 8; distance *= 2) largest = max(largest, __shfl_xor_sync(kAll, largest, distance));
  const float a = __uint_as_float(largest);
  if (largest >= 0x7f800000u) return {__uint_as_float(0x7fc00000u), {}};
  if (a <= kQuantizeFloor) return {0.0f, {}};
  QuantizedQuad q;
  const float inverse = __fdiv_rn(127.0f, a);
  q.d = __fdiv_rn(a, 127.0f);
#pragma unroll
  for (int j = 0; j < 4; ++j) q.code[j] = static_cast<int32_t>(fminf(127.0f, fmaxf(-127.0f, rintf(__fmul_rn(v[j], inverse)))));
  return q;
}

}  // namespace stet::cuda
