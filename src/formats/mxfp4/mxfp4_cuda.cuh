// MXFP4 on a device.
#pragma once

#include "formats/cuda_weights.cuh"
#include "formats/mxfp4/mxfp4.h"
#include "formats/pack.h"
#include "formats/f16_planes.cuh"

namespace stet::cuda {

template <>
struct CudaWeights<Format::mxfp4> {
  static constexpr uint32_t kCodes = 256, kScales = 16, kPlanes = 1;
  struct Words {
    uint2 both;  // row 2g, row 2g + 1: a byte has an element of each step
  };
  __device__ static Words words(const uint8_t* codes, uint32_t lane) { return {load_words(codes + fragment_offset(lane))}; }
  // As e4m3 codes the sign and the three bits of a nibble are 2^-7 times twice its value.
  __device__ static uint32_t e4m3_codes(uint32_t nibbles, uint32_t step) {
    return step == 0 ? (nibbles << 4 & 0x80808080u) | (nibbles << 2 & 0x1c1c1c1cu)
                     : (nibbles & 0x80808080u) | (nibbles >> 2 & 0x1c1c1c1cu);
  }
  __device__ static void fragment(const Words& w, uint32_t step, uint32_t a[kPlanes][4]) {
    const uint32_t row[2] = {e4m3_codes(w.both.x, step), e4m3_codes(w.both.y, step)};
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) a[0][i] = e4m3_pair(row[i % 2], i / 2);
  }
  template <ActKind kKind>
  static constexpr float kUnit = kKind == ActKind::i8 ? 0.5f : 0x1p-10f;
  __device__ static float element(const uint8_t* codes, const uint8_t* scales, uint32_t row, uint32_t i) {
    return __fmul_rn(e2m1_to_f32(nibble_code(codes, row, i)), e8m0_to_f32(scales[row]));
  }
};

}  // namespace stet::cuda
