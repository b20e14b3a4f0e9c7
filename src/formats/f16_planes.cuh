// Pairs of f16 in a register, and the planes of e4m3 values (docs/numerics.md 3.3) as such. Everything here is exact.
#pragma once

#include "base/cuda/device.cuh"

namespace stet::cuda {

#if __CUDA_ARCH__ < 890
// The values of codes 2 * half and 2 * half + 1 of a word of four e4m3 codes: a code seven bits up is an f16, subnormal or not, of 2^-8
// times its value; its sign goes one bit further.
__device__ __forceinline__ uint32_t e4m3_pair(uint32_t codes, uint32_t half) {
  const uint32_t spread = __byte_perm(codes, 0, half == 0 ? 0x1404 : 0x3424);
  return mul_pair((spread & 0x80008000u) | (spread >> 1 & 0x3f803f80u), 0x5c005c00u);
}
#endif

// e4m3 values as whole part and fraction, both with the value's sign.
struct PlanePair {
  uint32_t whole, fraction;  // fraction: a multiple of 2^-9
};
__device__ __forceinline__ PlanePair planes_of_pair(uint32_t values) {
  // From 1024 on the last bit of an f16 is 1. Adding 1023.5 to a size of 1 or more rounds it down if something is added that
  // decides ties and reaches no other: (1 + 2^-10) * size + 1023.5, for fractions of a size above 1 end at 7/8, and 448 * 2^-10
  // is less than a half. Sizes below 1 become 1023.5 or 1024, which the clamp makes zero.
  const uint32_t lifted = fma_size_pair(values, 0x3c013c01u, 0x63ff63ffu);
  const uint32_t size = fma_relu_pair(lifted, 0x3c003c00u, 0xe400e400u);
  const uint32_t whole = size | (values & 0x80008000u);
  return {whole, sub_pair(values, whole)};
}

// Two int8 codes of a word as f16.
__device__ __forceinline__ uint32_t int8_pair(uint32_t codes, uint32_t half) {
  // 1024 + (code + 128), less 1152.
  return sub_pair(__byte_perm(codes ^ 0x80808080u, 0x64646464u, half == 0 ? 0x4140 : 0x4342), 0x64806480u);
}

}  // namespace stet::cuda
