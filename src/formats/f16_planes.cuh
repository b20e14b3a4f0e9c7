// Pairs of f16 in a register, and the planes of e4m3 values (docs/numerics.md 3.3) as such. Everything here is exact.
#pragma once

#include "base/cuda/device.cuh"

namespace stet::cuda {

__device__ __forceinline__ uint32_t add_pair(uint32_t a, uint32_t b) {
  uint32_t c;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  return c;
}
__device__ __forceinline__ uint32_t sub_pair(uint32_t a, uint32_t b) {
  uint32_t c;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  return c;
}
__device__ __forceinline__ uint32_t mul_pair(uint32_t a, uint32_t b) {
  uint32_t c;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  return c;
}

// The values of codes 2 * half and 2 * half + 1 of a word of four e4m3 codes.
__device__ __forceinline__ uint32_t e4m3_pair(uint32_t codes, uint32_t half) {
#if __CUDA_ARCH__ >= 890
  uint32_t pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<uint16_t>(half == 0 ? codes : codes >> 16)));
  return pair;
#else
  // An e4m3 code seven bits up is an f16, subnormal or not, of 2^-8 times its value; its sign goes one bit further.
  const uint32_t spread = __byte_perm(codes, 0, half == 0 ? 0x1404 : 0x3424);
  return mul_pair((spread & 0x80008000u) | (spread >> 1 & 0x3f803f80u), 0x5c005c00u);
#endif
}

// e4m3 values as whole part and fraction, both with the value's sign.
struct PlanePair {
  uint32_t whole, fraction;  // fraction: a multiple of 2^-9
};
__device__ __forceinline__ PlanePair planes_of_pair(uint32_t values) {
  // Less 7/16 in size, the nearest integer is the whole part: fractions above 1 are multiples of 1/8, those below 1 end
  // at 15/16, and what 1536 takes from the sum's last bits goes to even. Where the subtraction rounds (above 32), it
  // stays within half of the integer that the value is, or ties to it.
  const uint32_t seven_sixteenths = (values & 0x80008000u) | 0x37003700u;
  const uint32_t lifted = add_pair(sub_pair(values, seven_sixteenths), 0x66006600u);
  const uint32_t whole = sub_pair(lifted, 0x66006600u);
  return {whole, sub_pair(values, whole)};
}

// Two int8 codes of a word as f16.
__device__ __forceinline__ uint32_t int8_pair(uint32_t codes, uint32_t half) {
  // 1024 + (code + 128), less 1152.
  return sub_pair(__byte_perm(codes ^ 0x80808080u, 0x64646464u, half == 0 ? 0x4140 : 0x4342), 0x64806480u);
}

// out = a * b + c over 16 columns, f32 sums.
__device__ __forceinline__ void mma_f16(float out[4], const uint32_t a[4], uint32_t b0, uint32_t b1, const float c[4]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=f"(out[0]), "=f"(out[1]), "=f"(out[2]), "=f"(out[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

}  // namespace stet::cuda
