// Four packed codes of F8_E4M3 as floats on a device. Codes of NaN are of no account: their scale is NaN (e4m3_pack.cpp).
#pragma once

#include "base/cuda/device.cuh"
#include "formats/e4m3/e4m3.h"

namespace stet::cuda {

__device__ __forceinline__ float4 e4m3_values(uint32_t codes) {
#if __CUDA_ARCH__ >= 890
  uint32_t low, high;  // f16 holds every value
  asm("{ .reg .b16 a, b; mov.b32 {a, b}, %2; cvt.rn.f16x2.e4m3x2 %0, a; cvt.rn.f16x2.e4m3x2 %1, b; }" : "=r"(low), "=r"(high) : "r"(codes));
  const float2 a = f16_pair(low), b = f16_pair(high);
  return {a.x, a.y, b.x, b.y};
#else
  const auto value = [&](uint32_t i) { return e4m3_to_f32(static_cast<uint8_t>(codes >> 8 * i)); };
  return {value(0), value(1), value(2), value(3)};
#endif
}

}  // namespace stet::cuda
