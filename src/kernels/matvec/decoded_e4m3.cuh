// Products of F8_E4M3 weights and f32 activations: docs/numerics.md 3.2 of the decoded weights. A lane has rows 2g and 2g + 1 of a tile
// (g = lane % 8) and one segment, a warp four segments side by side: one chain of fma a row and column.
#pragma once

#include "formats/e4m3/e4m3_values.cuh"
#include "formats/e8m0.h"
#include "formats/pack.h"
#include "kernels/common/segments.h"

namespace stet::cuda {

// The chunks of a lane's rows, one held in registers: its blocks are asked for anew as they are used up.
class DecodedChunks {
 public:
  // Chunks begin .. end - 1 of a tile.
  __device__ DecodedChunks(const uint8_t* tile, uint32_t begin, uint32_t end)
      : at_(tile + size_t{begin} * kChunkBytes + threadIdx.x % 8 * 8), left_(end > begin ? end - begin : 0) {
    if (left_ == 0) return;
#pragma unroll
    for (uint32_t b = 0; b < kChunkBlocks; ++b) load(at_, b);
  }

  // acc[row][column] += the products with x[column * stride + ...], which begins at the first chunk.
  template <uint32_t kColumns>
  __device__ void add(const float* x, uint32_t stride, float (&acc)[2][kColumns]) {
#pragma unroll 1
    for (; left_ > 0; --left_, x += kChunk) {
      at_ += kChunkBytes;
#pragma unroll
      for (uint32_t b = 0; b < kChunkBlocks; ++b) {
        add_block<kColumns>(b, x + b * kBlock, stride, acc);
        if (left_ > 1) load(at_, b);
      }
    }
  }

 private:
  static constexpr uint32_t kCodeBytes = 512, kScaleBytes = 16, kChunkBytes = kChunkBlocks * (kCodeBytes + kScaleBytes);

  __device__ void load(const uint8_t* chunk, uint32_t b) {
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) codes_[b][i] = __ldcg(reinterpret_cast<const uint2*>(chunk + b * kCodeBytes + i * 64));
    // The lane's place among the scales is a quarter of that among the codes.
    const uint32_t g = threadIdx.x % 8;
    scales_[b] = __ldcg(reinterpret_cast<const uint16_t*>(chunk - g * 8 + kChunkBlocks * kCodeBytes + b * kScaleBytes + g * 2));
  }

  template <uint32_t kColumns>
  __device__ void add_block(uint32_t b, const float* x, uint32_t stride, float (&acc)[2][kColumns]) const {
    const float scale[2] = {e8m0_to_f32(static_cast<uint8_t>(scales_[b])), e8m0_to_f32(static_cast<uint8_t>(scales_[b] >> 8))};
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) {
      const float4 w[2] = {scaled(codes_[b][i].x, scale[0]), scaled(codes_[b][i].y, scale[1])};
#pragma unroll
      for (uint32_t c = 0; c < kColumns; ++c) {
        const float4 v = *reinterpret_cast<const float4*>(x + c * stride + i * 4);
#pragma unroll
        for (uint32_t r = 0; r < 2; ++r) {
          acc[r][c] = __fmaf_rn(w[r].x, v.x, acc[r][c]);
          acc[r][c] = __fmaf_rn(w[r].y, v.y, acc[r][c]);
          acc[r][c] = __fmaf_rn(w[r].z, v.z, acc[r][c]);
          acc[r][c] = __fmaf_rn(w[r].w, v.w, acc[r][c]);
        }
      }
    }
  }
  __device__ static float4 scaled(uint32_t codes, float scale) {
    const float4 v = e4m3_values(codes);
    return {__fmul_rn(v.x, scale), __fmul_rn(v.y, scale), __fmul_rn(v.z, scale), __fmul_rn(v.w, scale)};
  }

  const uint8_t* at_;
  uint32_t left_;
  uint2 codes_[kChunkBlocks][8];
  uint16_t scales_[kChunkBlocks];
};

}  // namespace stet::cuda
