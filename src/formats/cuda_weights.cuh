// What a format tells the CUDA kernels. Formats specialise CudaWeights in <folder>/<folder>_cuda.cuh, over the packed
// layout that the CPU kernels read (formats/pack.h): a lane of an m16n8k32 product takes rows 2g and 2g + 1 of a tile
// (g = lane / 4) and columns 4t .. 4t + 3 and 16 + 4t .. 19 + 4t of a block (t = lane % 4), so that a warp reads whole
// runs of 256 bytes.
//
// Integer formats:
//   kCodes, kScales    bytes of a block
//   kMinimum           whether a minimum is added
//   kOffset            how far codes stand above their values
//   kHalves            whether the halves of a block have scales of their own; product() wants highs then
//   fragment(codes, at, lane, a)      the four registers of a lane; at: fragment_offset(lane), if no word was moved
//   product(codes, scales, lane, x, highs, out)
//       out[i]: float(isum) of (row 2g, column 2t), (2g, 2t + 1), (2g + 1, 2t), (2g + 1, 2t + 1)
//       highs: sums of the activations' codes 16 .. 31, of columns 2t and 2t + 1
//   sub_scales(scales, g, s)          s[half] of rows 2g and 2g + 1, where kHalves
//   scale(scales, g)                  dw of rows 2g and 2g + 1
//   minimum(scales, g)                their minima, where kMinimum
//   element(codes, scales, row, i)    one weight as f32
// Formats whose products go through f16 planes (kernels/matvec/plane_unit.cuh):
//   kCodes, kScales, element()        as above
//   kPlanes            how many f16 planes a weight has: 1, or 2 (its whole part, its fraction)
//   Words, words(codes, lane)         a lane's codes of a block: rows 2g and 2g + 1, columns as above
//   fragment(words, step, a)          a[plane]: the registers of an m16n8k16 product. Step s has columns 16s .. 16s + 15;
//                      a lane's columns of it are 16s + 4t .. 16s + 4t + 3, in this order
//   kUnit[i8 or e4m3]  what dw is of the scale: docs/numerics.md 3.1 and 3.3
// Float formats:
//   Element            as stored;  value(Element)  as f32
// A format that no kernel multiplies has neither.
#pragma once

#include "base/cuda/device.cuh"
#include "formats/format.h"

namespace stet::cuda {

template <Format kFormat>
struct CudaWeights;

// In blocks of 32, codes and scales apart.
template <Format kFormat>
inline constexpr bool kBlockWeights = requires {
  CudaWeights<kFormat>::kCodes;
};
template <Format kFormat>
inline constexpr bool kPlaneWeights = requires {
  CudaWeights<kFormat>::kPlanes;
};
template <Format kFormat>
inline constexpr bool kIntegerWeights = kBlockWeights<kFormat> && !kPlaneWeights<kFormat>;
template <Format kFormat>
inline constexpr bool kFloatWeights = requires {
  typename CudaWeights<kFormat>::Element;
};

// The activations of one block, as a lane holds them.
struct BlockInput {
  uint32_t b0, b1;  // codes of column g of the product
  float d[2];       // dx of columns 2t and 2t + 1
  int32_t sum[2];   // of their codes
};

// Integers below 2^22 in size become floats by their place in the mantissa of 1.5 * 2^23: the sum starts there.
constexpr int32_t kIntegerInFloat = 0x4b400000;
__device__ __forceinline__ float float_of_sum(int32_t c) { return __fsub_rn(__int_as_float(c), 12582912.0f); }

// The product of a block whose codes stand kOffset above their value.
template <int kOffset>
__device__ __forceinline__ void offset_product(const uint32_t a[4], const BlockInput& x, float out[4]) {
  const int32_t c0 = kIntegerInFloat - kOffset * x.sum[0], c1 = kIntegerInFloat - kOffset * x.sum[1];
  int32_t c[4] = {c0, c1, c0, c1};
  mma32(c, a, x.b0, x.b1);
#pragma unroll
  for (int i = 0; i < 4; ++i) out[i] = float_of_sum(c[i]);
}

__device__ __forceinline__ uint2 load_words(const uint8_t* p) { return *reinterpret_cast<const uint2*>(p); }

// Where a lane's words lie in a run of 256 bytes.
__device__ __forceinline__ uint32_t fragment_offset(uint32_t lane) { return lane % 4 * 64 + lane / 4 * 8; }

// Nibbles as pack_nibbles lays them.
__device__ __forceinline__ void nibble_codes(const uint8_t* codes, uint32_t at, uint32_t a[4]) {
  const uint2 w = load_words(codes + at);
  a[0] = w.x & 0x0f0f0f0fu;
  a[1] = w.y & 0x0f0f0f0fu;
  a[2] = w.x >> 4 & 0x0f0f0f0fu;
  a[3] = w.y >> 4 & 0x0f0f0f0fu;
}
__device__ __forceinline__ int nibble_code(const uint8_t* codes, uint32_t row, uint32_t i) {
  return codes[i % 16 / 4 * 64 + row * 4 + i % 4] >> (i < 16 ? 0 : 4) & 15;
}

// f16 scales of rows 2g and 2g + 1.
__device__ __forceinline__ float2 scale_pair(const uint8_t* scales, uint32_t g) {
  return f16_pair(*reinterpret_cast<const uint32_t*>(scales + 4 * g));
}
__device__ __forceinline__ float scale_of(const uint8_t* scales, uint32_t row) {
  return f16_value(*reinterpret_cast<const uint16_t*>(scales + 2 * row));
}

}  // namespace stet::cuda
