// Q8_0 on a device.
#pragma once

#include "formats/cuda_weights.cuh"

namespace stet::cuda {

template <>
struct CudaWeights<Format::q8_0> {
  static constexpr uint32_t kCodes = 512, kScales = 32;
  static constexpr bool kMinimum = false;
  static constexpr bool kHalves = false;
  static constexpr int kOffset = 128;
  __device__ static void fragment(const uint8_t* codes, uint32_t at, uint32_t, uint32_t a[4]) {
    const uint2 low = load_words(codes + at), high = load_words(codes + 256 + at);
    a[0] = low.x, a[1] = low.y, a[2] = high.x, a[3] = high.y;
  }
  __device__ static void product(const uint8_t* codes, const uint8_t*, uint32_t lane, const BlockInput& x,
                                 const int32_t*, float out[4]) {
    uint32_t a[4];
    fragment(codes, fragment_offset(lane), lane, a);
    offset_product<kOffset>(a, x, out);
  }
  __device__ static float2 scale(const uint8_t* scales, uint32_t g) { return scale_pair(scales, g); }
  __device__ static float2 minimum(const uint8_t*, uint32_t) { return {0.0f, 0.0f}; }
  __device__ static float element(const uint8_t* codes, const uint8_t* scales, uint32_t row, uint32_t i) {
    return __fmul_rn(static_cast<float>(static_cast<int>(codes[i / 4 * 64 + row * 4 + i % 4]) - 128),
                     scale_of(scales, row));
  }
};

}  // namespace stet::cuda
