// Activations quantised to the codes that planes are made of (kernels/cuda/activations.h), bits as kernels/quantize/quantize.h.
#pragma once

#include "kernels/quantize/block_cuda.cuh"
#include "kernels/quantize/quantize_common.h"

namespace stet::cuda {

struct PlaneCodes {
  float dx;        // of the lane's block of 32
  uint32_t codes;  // of its four elements
};

#if __CUDA_ARCH__ < 890
// Four f32, at most 448 in size, as e4m3 codes.
__device__ __forceinline__ uint32_t e4m3_codes(float4 x) {
  return f32_to_e4m3(x.x) | uint32_t{f32_to_e4m3(x.y)} << 8 | uint32_t{f32_to_e4m3(x.z)} << 16 |
         uint32_t{f32_to_e4m3(x.w)} << 24;
}
#endif

// A group of 128 by a warp, four elements a lane; elements that are not there are zero.
template <ActKind kKind>
__device__ __forceinline__ PlaneCodes plane_codes(float4 x) {
  if constexpr (kKind == ActKind::i8) {
    const QuantizedQuad q = quantize_quad(x);
    return {q.d, packed_codes(q)};
  } else {
    const float v[4] = {x.x, x.y, x.z, x.w};
    const BlockScale scale = plane_scale(__reduce_max_sync(kAll, largest_bits(v, 4)));
    if (scale.inverse == 0.0f) return {scale.d, 0};
    return {scale.d, e4m3_codes({__fmul_rn(x.x, scale.inverse), __fmul_rn(x.y, scale.inverse),
                                 __fmul_rn(x.z, scale.inverse), __fmul_rn(x.w, scale.inverse)})};
  }
}

}  // namespace stet::cuda
