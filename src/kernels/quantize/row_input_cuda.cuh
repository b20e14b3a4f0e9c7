// The activations of one row in shared memory, made by every block of threads for itself: the row, or its norm
// (kernels/rmsnorm), quantised for integer weights. Bits as kernels/quantize and kernels/rmsnorm.
#pragma once

#include "base/fp.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/norm.cuh"
#include "kernels/quantize/block_cuda.cuh"
#include "kernels/quantize/prepare_cuda.h"

namespace stet::cuda {

constexpr uint32_t kRowThreads = 512;

// Of a block of 32 activations.
struct alignas(16) BlockMeta {
  float d;            // the scale
  float second;       // what the format of the weights needs beside it
  int32_t sum, high;  // of the codes; of the codes 16 .. 31
};

// Where a row's activations lie in shared memory. Bytes: row_input_bytes().
struct RowInput {
  float* values;      // of float weights: [k]
  float* lanes;       // [kNormLanes]
  uint8_t* codes;     // of integer weights: [k], a block's words of four in the order 0 4 1 5 2 6 3 7
  BlockMeta* blocks;  // [k / 32]
};

__host__ __device__ constexpr uint32_t padded_floats(uint32_t k) { return (k + 3) / 4 * 4; }
__host__ __device__ constexpr size_t row_input_bytes(uint32_t k, bool integer) {
  return kNormLanes * 4 + (integer ? size_t{k} + k / 32 * sizeof(BlockMeta) : size_t{padded_floats(k)} * 4);
}

__device__ __forceinline__ RowInput row_input(uint8_t* memory, uint32_t k, bool integer) {
  uint8_t* row = memory + kNormLanes * 4;
  return {reinterpret_cast<float*>(row), reinterpret_cast<float*>(memory),
          integer ? row + k / 32 * sizeof(BlockMeta) : nullptr, reinterpret_cast<BlockMeta*>(row)};
}

// Four activations of a lane, eight lanes a block of 32, to their places. Every lane of the warp takes part. second(d,
// sum): BlockMeta.
template <typename Second>
__device__ __forceinline__ void put_quad(const RowInput& r, uint32_t quad, float4 x, const Second& second) {
  const QuantizedQuad q = quantize_quad(x);
  const uint32_t word = quad % 8, block = quad / 8;
  const int32_t quarter = q.code[0] + q.code[1] + q.code[2] + q.code[3];
  int32_t half = quarter + __shfl_xor_sync(kAll, quarter, 1);
  half += __shfl_xor_sync(kAll, half, 2);
  const int32_t other = __shfl_xor_sync(kAll, half, 4), sum = half + other;
  reinterpret_cast<uint32_t*>(r.codes)[block * 8 + word % 4 * 2 + word / 4] = packed_codes(q);
  if (word == 4) r.blocks[block] = {q.d, second(q.d, sum), sum, half};  // half: of the lanes 4 .. 7
}

__device__ __forceinline__ float normed(float x, float factor, float w, bool rounded) {
  const float y = __fmul_rn(__fmul_rn(x, factor), w);
  return rounded_if(rounded, y);
}
__device__ __forceinline__ float4 normed(float4 x, float factor, float4 w, bool rounded) {
  return {normed(x.x, factor, w.x, rounded), normed(x.y, factor, w.y, rounded), normed(x.z, factor, w.z, rounded),
          normed(x.w, factor, w.w, rounded)};
}

// Makes the row. Quads of elements go round the threads; those of the first round, and what the norm multiplies them
// with, are in registers early: fetch() reads what depends on no earlier kernel, make() the rest. Rows of another
// length than whole quads go one by one.
template <bool kInteger>
class RowMaker {
 public:
  __device__ RowMaker(const RowInput& r, const CudaRowSource& s, const float* in, uint32_t k)
      : r_(r),
        weight_(s.weight),
        in_(in),
        eps_(s.eps),
        rounded_(s.rounded),
        k_(k),
        quads_(k % 4 == 0 ? k / 4 : 0) {}

  __device__ void fetch() {
    if (weight_ == nullptr) return;
#pragma unroll
    for (uint32_t i = 0; i < kEarly; ++i)
      w_[i] = __ldg(reinterpret_cast<const float4*>(weight_) + place(i * kRowThreads));
  }
  template <typename Second>
  __device__ void make(const Second& second) {
    float4 x[kEarly];
#pragma unroll
    for (uint32_t i = 0; i < kEarly; ++i) x[i] = quad_of(place(i * kRowThreads));
    const float factor = weight_ != nullptr ? norm_factor() : 0.0f;
#pragma unroll
    for (uint32_t i = 0; i < kEarly; ++i)
      if (first() + i * kRowThreads < quads_)
        put(place(i * kRowThreads), weight_ != nullptr ? normed(x[i], factor, w_[i], rounded_) : x[i], second);
#pragma unroll 1
    for (uint32_t at = kEarly * kRowThreads; first() + at < quads_; at += kLate * kRowThreads)
      put_late(at, factor, second);
    if (quads_ == 0) put_one_by_one(factor);
    __syncthreads();
  }

 private:
  static constexpr uint32_t kEarly = 2, kLate = 5;  // rounds

  // Every lane of a warp goes round as often as the first: the last block is done twice rather than not together.
  __device__ uint32_t first() const { return threadIdx.x / kWarp * kWarp; }
  __device__ uint32_t place(uint32_t at) const {
    const uint32_t quad = threadIdx.x + at;
    return quad < quads_ ? quad : quads_ < 8 ? 0 : quads_ - 8 + quad % 8;
  }
  // Written by another kernel.
  __device__ float4 quad_of(uint32_t quad) const {
    return quads_ == 0 ? float4{} : __ldcg(reinterpret_cast<const float4*>(in_) + quad);
  }
  template <typename Second>
  __device__ void put(uint32_t quad, float4 x, const Second& second) const {
    if constexpr (kInteger) {
      put_quad(r_, quad, x, second);
    } else {
      reinterpret_cast<float4*>(r_.values)[quad] = x;
    }
  }
  template <typename Second>
  __device__ void put_late(uint32_t at, float factor, const Second& second) const {
    float4 x[kLate];
#pragma unroll
    for (uint32_t i = 0; i < kLate; ++i) x[i] = quad_of(place(at + i * kRowThreads));
#pragma unroll
    for (uint32_t i = 0; i < kLate; ++i) {
      if (first() + at + i * kRowThreads >= quads_) return;
      const uint32_t quad = place(at + i * kRowThreads);
      const float4* w = reinterpret_cast<const float4*>(weight_);
      put(quad, w != nullptr ? normed(x[i], factor, w[quad], rounded_) : x[i], second);
    }
  }
  __device__ void put_one_by_one(float factor) const {
    if constexpr (!kInteger)
      for (uint32_t i = threadIdx.x; i < k_; i += kRowThreads) {
        const float x = __ldcg(in_ + i);
        r_.values[i] = weight_ != nullptr ? normed(x, factor, weight_[i], rounded_) : x;
      }
  }

  // 1 / sqrt(mean of squares + eps), a thread a lane of the sum.
  __device__ float norm_factor() const {
    if (threadIdx.x < kNormLanes) {
      float sum = 0.0f;
#pragma unroll 1
      for (uint32_t i = threadIdx.x; i < k_; i += 16 * kNormLanes) {
        float x[16];
#pragma unroll
        for (uint32_t j = 0; j < 16; ++j) x[j] = i + j * kNormLanes < k_ ? __ldcg(in_ + i + j * kNormLanes) : 0.0f;
#pragma unroll
        for (uint32_t j = 0; j < 16; ++j)
          if (i + j * kNormLanes < k_) sum = __fmaf_rn(x[j], x[j], sum);
      }
      r_.lanes[threadIdx.x] = sum;
    }
    __syncthreads();
    return inverse_root_of_mean(fold_norm_lanes(r_.lanes), k_, eps_);
  }

  const RowInput r_;
  const float *weight_, *in_;
  const float eps_;
  const bool rounded_;
  const uint32_t k_, quads_;
  float4 w_[kEarly] = {};
};

}  // namespace stet::cuda
