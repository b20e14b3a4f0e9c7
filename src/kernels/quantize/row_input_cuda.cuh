// The activations of one row in shared memory, made by every block of threads for itself: the row, or its norm (kernels/rmsnorm),
// quantised for integer weights. Bits as kernels/quantize and kernels/rmsnorm.
#pragma once

#include "kernels/cuda/math.cuh"
#include "kernels/quantize/block_cuda.cuh"
#include "kernels/quantize/prepare_cuda.h"

namespace stet::cuda {

constexpr uint32_t kRowThreads = 512;
constexpr uint32_t kNormLanes = 256;  // of a norm's sum

// Of a block of 32 activations.
struct alignas(16) BlockMeta {
  float d;            // the scale
  int32_t sum;        // of the codes
  float scaled;       // scale * sum, rounded once
  int32_t high;       // of the codes 16 .. 31
};

// Where a row's activations lie in shared memory. Bytes: row_input_bytes().
struct RowInput {
  float* values;      // float weights: the activations [k]; integer ones: the row before its norm
  float* weights;     // of the norm [k]
  float* lanes;       // [kNormLanes]
  uint8_t* codes;     // [k], a block's words of four in the order 0 4 1 5 2 6 3 7
  BlockMeta* blocks;  // [k / 32]
};

__host__ __device__ constexpr uint32_t padded_floats(uint32_t k) { return (k + 3) / 4 * 4; }
__host__ __device__ constexpr size_t row_input_bytes(uint32_t k, bool integer, bool norm) {
  const size_t rows = size_t{integer ? 0u : 1u} + (norm ? (integer ? 2u : 1u) : 0u);
  return rows * padded_floats(k) * 4 + (norm ? kNormLanes * 4 : 0) + (integer ? size_t{k} + k / 32 * sizeof(BlockMeta) : 0);
}

__device__ __forceinline__ RowInput row_input(uint8_t* memory, uint32_t k, bool integer, bool norm) {
  RowInput r = {};
  const auto take = [&](size_t bytes) {
    uint8_t* p = memory;
    memory += bytes;
    return p;
  };
  if (!integer || norm) r.values = reinterpret_cast<float*>(take(size_t{padded_floats(k)} * 4));
  if (norm) r.weights = reinterpret_cast<float*>(take(size_t{padded_floats(k)} * 4));
  if (norm) r.lanes = reinterpret_cast<float*>(take(kNormLanes * 4));
  if (integer) r.blocks = reinterpret_cast<BlockMeta*>(take(k / 32 * sizeof(BlockMeta)));
  if (integer) r.codes = take(k);
  return r;
}

// Four elements a thread where they come in fours.
template <typename Load>
__device__ __forceinline__ void fill_row(float* to, uint32_t k, const Load& load) {
  if (k % 4 != 0) {
    for (uint32_t i = threadIdx.x; i < k; i += kRowThreads) to[i] = load(i).x;
    return;
  }
#pragma unroll 4
  for (uint32_t i = threadIdx.x * 4; i < k; i += kRowThreads * 4) *reinterpret_cast<float4*>(to + i) = load(i);
}

// What depends on no earlier kernel.
__device__ __forceinline__ void fetch_norm(const RowInput& r, const float* weight, uint32_t k) {
  const bool fours = k % 4 == 0;
  fill_row(r.weights, k, [=](uint32_t i) { return fours ? *reinterpret_cast<const float4*>(weight + i) : float4{weight[i], 0, 0, 0}; });
}
// Written by another kernel.
__device__ __forceinline__ float4 row_quad(const float* in, uint32_t i, bool fours) {
  return fours ? __ldcg(reinterpret_cast<const float4*>(in + i)) : float4{__ldcg(in + i), 0, 0, 0};
}

// 1 / sqrt(mean of squares + eps) of the row in `values`.
__device__ __forceinline__ float norm_of_row(const RowInput& r, uint32_t k, float eps) {
  if (threadIdx.x < kNormLanes) {
    float sum = 0.0f;
#pragma unroll 8
    for (uint32_t i = threadIdx.x; i < k; i += kNormLanes) sum = __fmaf_rn(r.values[i], r.values[i], sum);
    r.lanes[threadIdx.x] = sum;
  }
  __syncthreads();
  // Folded in halves, by every warp for itself.
  float x[8];
#pragma unroll
  for (uint32_t i = 0; i < 8; ++i) x[i] = r.lanes[i * kWarp + threadIdx.x % kWarp];
#pragma unroll
  for (uint32_t width = 4; width >= 1; width /= 2)
#pragma unroll
    for (uint32_t i = 0; i < width; ++i) x[i] = __fadd_rn(x[i], x[i + width]);
  float total = x[0];
#pragma unroll
  for (uint32_t width = kWarp / 2; width >= 1; width /= 2) total = __fadd_rn(total, __shfl_xor_sync(kAll, total, width));
  const float mean = __fdiv_rn(total, static_cast<float>(k));
  return __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(mean, eps)));
}

// Four activations of a lane, eight lanes a block of 32, to their places. Every lane of the warp takes part.
__device__ __forceinline__ void put_quad(const RowInput& r, uint32_t quad, float4 x) {
  const QuantizedQuad q = quantize_quad(x);
  const uint32_t word = quad % 8, block = quad / 8;
  const int32_t quarter = q.code[0] + q.code[1] + q.code[2] + q.code[3];
  int32_t half = quarter + __shfl_xor_sync(kAll, quarter, 1);
  half += __shfl_xor_sync(kAll, half, 2);
  const int32_t other = __shfl_xor_sync(kAll, half, 4), sum = half + other;
  reinterpret_cast<uint32_t*>(r.codes)[block * 8 + word % 4 * 2 + word / 4] =
      static_cast<uint32_t>(q.code[0] & 255) | static_cast<uint32_t>(q.code[1] & 255) << 8 | static_cast<uint32_t>(q.code[2] & 255) << 16 |
      static_cast<uint32_t>(q.code[3]) << 24;
  if (word == 4) r.blocks[block] = {q.d, sum, __fmul_rn(q.d, static_cast<float>(sum)), half};  // half: of the lanes 4 .. 7
}

__device__ __forceinline__ float4 normed(float4 x, float factor, float4 w) {
  return {__fmul_rn(__fmul_rn(x.x, factor), w.x), __fmul_rn(__fmul_rn(x.y, factor), w.y), __fmul_rn(__fmul_rn(x.z, factor), w.z),
          __fmul_rn(__fmul_rn(x.w, factor), w.w)};
}

template <bool kInteger>
__device__ __forceinline__ void make_row(const RowInput& r, const CudaRowSource& s, const float* in, uint32_t k) {
  const bool norm = s.weight != nullptr, fours = k % 4 == 0;
  float factor = 0.0f;
  if (norm || !kInteger) fill_row(r.values, k, [=](uint32_t i) { return row_quad(in, i, fours); });
  if (norm) {
    __syncthreads();
    factor = norm_of_row(r, k, s.eps);
  }
  if constexpr (kInteger) {
    const uint32_t quads = k / 4;
    // Every lane of a warp goes round as often as the first: the last block is done twice rather than not together.
#pragma unroll 2
    for (uint32_t first = threadIdx.x / kWarp * kWarp; first < quads; first += kRowThreads) {
      uint32_t quad = first + threadIdx.x % kWarp;
      if (quad >= quads) quad = quads - 8 + quad % 8;
      const float4 x = norm ? normed(reinterpret_cast<const float4*>(r.values)[quad], factor, reinterpret_cast<const float4*>(r.weights)[quad])
                            : row_quad(in, quad * 4, true);
      put_quad(r, quad, x);
    }
  } else if (norm) {
    for (uint32_t i = threadIdx.x; i < k; i += kRowThreads) r.values[i] = __fmul_rn(__fmul_rn(r.values[i], factor), r.weights[i]);
  }
  __syncthreads();
}

}  // namespace stet::cuda
