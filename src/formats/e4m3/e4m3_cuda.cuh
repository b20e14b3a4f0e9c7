// F8_E4M3 on a device.
#pragma once

#include "formats/cuda_weights.cuh"
#include "formats/e4m3/e4m3.h"
#include "formats/pack.h"
#include "formats/f16_planes.cuh"

namespace stet::cuda {

template <>
struct CudaWeights<Format::e4m3> {
  static constexpr uint32_t kCodes = 512, kScales = 16, kPlanes = 2;
  struct Words {
    uint2 of[2];  // of a step: row 2g, row 2g + 1
  };
  __device__ static Words words(const uint8_t* codes, uint32_t lane) {
    const uint8_t* at = codes + fragment_offset(lane);
    return {{load_words(at), load_words(at + 256)}};
  }
  __device__ static void fragment(const Words& w, uint32_t step, uint32_t a[kPlanes][4]) {
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      const PlanePair p = planes_of_pair(e4m3_pair(i % 2 == 0 ? w.of[step].x : w.of[step].y, i / 2));
      a[0][i] = p.whole, a[1][i] = p.fraction;
    }
  }
  template <ActKind kKind>
  static constexpr float kUnit = kKind == ActKind::i8 ? 0x1p-9f : 0x1p-18f;
  __device__ static float element(const uint8_t* codes, const uint8_t* scales, uint32_t row, uint32_t i) {
    return __fmul_rn(e4m3_to_f32(codes[i / 4 * 64 + row * 4 + i % 4]), e8m0_to_f32(scales[row]));
  }
};

}  // namespace stet::cuda
