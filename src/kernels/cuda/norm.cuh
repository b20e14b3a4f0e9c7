// How the sums of norms end on a device: docs/numerics.md section 4.
#pragma once

#include "base/cuda/device.cuh"

namespace stet::cuda {

constexpr uint32_t kNormLanes = 256;              // of a norm's sum: element mod 256
constexpr uint32_t kNormRows = kNormLanes / kWarp;

// The lanes folded in halves, by a warp; x[i]: norm lane 32 i + lane of the warp. (a + b and b + a are the same bits.)
__device__ __forceinline__ float fold_norm_lanes(float (&x)[kNormRows]) {
#pragma unroll
  for (uint32_t width = kNormRows / 2; width >= 1; width /= 2)
#pragma unroll
    for (uint32_t i = 0; i < width; ++i) x[i] = __fadd_rn(x[i], x[i + width]);
  float total = x[0];
#pragma unroll
  for (uint32_t width = kWarp / 2; width >= 1; width /= 2) total = __fadd_rn(total, __shfl_xor_sync(kAll, total, width));
  return total;
}
// The same of lanes in shared memory; every warp does it for itself.
__device__ __forceinline__ float fold_norm_lanes(const float* lanes) {
  float x[kNormRows];
#pragma unroll
  for (uint32_t i = 0; i < kNormRows; ++i) x[i] = lanes[i * kWarp + threadIdx.x % kWarp];
  return fold_norm_lanes(x);
}

// 1 / sqrt(mean + eps), of a sum of n squares.
__device__ __forceinline__ float inverse_root_of_mean(float sum, uint32_t n, float eps) {
  return __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(__fdiv_rn(sum, static_cast<float>(n)), eps)));
}

}  // namespace stet::cuda
