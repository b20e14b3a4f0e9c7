// Q6_K on a device: the two halves of a block have scales of their own, so each is a product of 16 columns.
#pragma once

#include "formats/cuda_weights.cuh"

namespace stet::cuda {

template <>
struct CudaWeights<Format::q6_k> {
  static constexpr uint32_t kCodes = 384, kScales = 64;
  static constexpr bool kMinimum = false;
  static constexpr bool kHalves = true;
  static constexpr int kOffset = 32;
  __device__ static void fragment(const uint8_t* codes, uint32_t at, uint32_t lane, uint32_t a[4]) {
    const uint32_t g = lane / 4, t = lane % 4;
    nibble_codes(codes, at, a);
    const uint2 top0 = load_words(codes + 256 + g * 8), top1 = load_words(codes + 320 + g * 8);
    a[0] |= (top0.x >> (2 * t) & 0x03030303u) << 4;
    a[1] |= (top0.y >> (2 * t) & 0x03030303u) << 4;
    a[2] |= (top1.x >> (2 * t) & 0x03030303u) << 4;
    a[3] |= (top1.y >> (2 * t) & 0x03030303u) << 4;
  }
  __device__ static void sub_scales(const uint8_t* scales, uint32_t g, float2 s[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const char2 c = *reinterpret_cast<const char2*>(scales + 16 * half + 2 * g);
      s[half] = {static_cast<float>(c.x), static_cast<float>(c.y)};
    }
  }
  __device__ static void product(const uint8_t* codes, const uint8_t* scales, uint32_t lane, const BlockInput& x,
                                 const int32_t* high, float out[4]) {
    const uint32_t g = lane / 4;
    uint32_t a[4];
    fragment(codes, fragment_offset(lane), lane, a);
    const int32_t h0 = -32 * high[0], h1 = -32 * high[1], l0 = -32 * x.sum[0] - h0, l1 = -32 * x.sum[1] - h1;
    int32_t low_sum[4] = {l0, l1, l0, l1}, high_sum[4] = {h0, h1, h0, h1};
    mma16(low_sum, a[0], a[1], x.b0);
    mma16(high_sum, a[2], a[3], x.b1);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t row = 2 * g + i / 2;
      const int32_t s0 = static_cast<int8_t>(scales[row]), s1 = static_cast<int8_t>(scales[16 + row]);
      out[i] = static_cast<float>(s0 * low_sum[i] + s1 * high_sum[i]);
    }
  }
  __device__ static float2 scale(const uint8_t* scales, uint32_t g) { return scale_pair(scales + 32, g); }
  __device__ static float2 minimum(const uint8_t*, uint32_t) { return {0.0f, 0.0f}; }
  __device__ static float element(const uint8_t* codes, const uint8_t* scales, uint32_t row, uint32_t i) {
    const uint32_t top = codes[256 + i / 16 * 64 + row * 4 + i % 4] >> (2 * (i % 16 / 4)) & 3;
    const int code = nibble_code(codes, row, i) | static_cast<int>(top << 4);
    const float sub = static_cast<float>(static_cast<int8_t>(scales[i / 16 * 16 + row]));
    return __fmul_rn(__fmul_rn(scale_of(scales + 32, row), sub), static_cast<float>(code - 32));
  }
};

}  // namespace stet::cuda
