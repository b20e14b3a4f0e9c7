// Four packed codes of F8_E4M3 as floats on a device. Codes of NaN are of no account: their scale is NaN (e4m3_pack.cpp).
#pragma once

#include "formats/f16_planes.cuh"

namespace stet::cuda {

__device__ __forceinline__ float4 e4m3_values(uint32_t codes) {
  const float2 a = f16_pair(e4m3_pair(codes, 0)), b = f16_pair(e4m3_pair(codes, 1));
  return {a.x, a.y, b.x, b.y};
}

}  // namespace stet::cuda
