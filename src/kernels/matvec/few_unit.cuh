// As row_unit.cuh, for up to eight rows of activations and integer weights: the columns of an m16n8k32 product. The
// activations are those that a kernel of their own prepared (kernels/cuda/activations.h), one group of rows of it.
#pragma once

#include "kernels/cuda/activations.h"
#include "kernels/matvec/integer_runs.cuh"
#include "kernels/matvec/matvec_cuda.h"
#include "kernels/quantize/row_input_cuda.cuh"

namespace stet::cuda {

template <Format kFormat>
struct FewUnit : IntegerRuns<kFormat, FewUnit<kFormat>> {
  using W = CudaWeights<kFormat>;
  using Sums = float4;  // of rows 2g, 2g, 2g + 1, 2g + 1 and columns 2t, 2t + 1, 2t, 2t + 1
  using Input = const uint8_t*;
  static constexpr uint32_t kOutputs = kCudaGroup;

  __device__ static void add_block(const uint8_t* codes, const uint8_t* scales, const uint8_t* records, uint32_t block,
                                   Sums& sums) {
    const uint8_t* x = records + size_t{block} * kCudaRecord;
    const uint32_t lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
    const uint2 b = *reinterpret_cast<const uint2*>(x + lane * 8);
    const int4 s = *reinterpret_cast<const int4*>(x + 256 + t * 16);
    const float dx[2] = {__int_as_float(s.x), __int_as_float(s.y)};
    int2 high = {0, 0};
    if constexpr (W::kHalves) high = *reinterpret_cast<const int2*>(x + 352 + t * 8);
    const int32_t highs[2] = {high.x, high.y};
    float isum[4];
    W::product(codes, scales, lane, {b.x, b.y, {dx[0], dx[1]}, {s.z, s.w}}, highs, isum);
    const float2 d = W::scale(scales, g);
    sums.x = __fmaf_rn(__fmul_rn(d.x, dx[0]), isum[0], sums.x);
    sums.y = __fmaf_rn(__fmul_rn(d.x, dx[1]), isum[1], sums.y);
    sums.z = __fmaf_rn(__fmul_rn(d.y, dx[0]), isum[2], sums.z);
    sums.w = __fmaf_rn(__fmul_rn(d.y, dx[1]), isum[3], sums.w);
    if constexpr (W::kMinimum) {
      const float2 least = W::minimum(scales, g), scaled = *reinterpret_cast<const float2*>(x + 320 + t * 8);
      sums.x = __fmaf_rn(least.x, scaled.x, sums.x);
      sums.y = __fmaf_rn(least.x, scaled.y, sums.y);
      sums.z = __fmaf_rn(least.y, scaled.x, sums.z);
      sums.w = __fmaf_rn(least.y, scaled.y, sums.w);
    }
  }
  __device__ static Sums joined(const Sums& left, const Sums& right) {
    return {__fadd_rn(left.x, right.x), __fadd_rn(left.y, right.y), __fadd_rn(left.z, right.z),
            __fadd_rn(left.w, right.w)};
  }
  __device__ static void leave(const Sums& sums, float* partial) {
    const uint32_t lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
    *reinterpret_cast<float2*>(partial + 2 * t * kTileRows + 2 * g) = {sums.x, sums.z};
    *reinterpret_cast<float2*>(partial + (2 * t + 1) * kTileRows + 2 * g) = {sums.y, sums.w};
  }

  // Copies the records. (Columns of rows that are not there hold what was there before: nobody reads what becomes of
  // them.)
  class Maker {
   public:
    __device__ Maker(uint8_t* memory, const CudaProduct& p, const CudaStep*, uint32_t k)
        : memory_(memory), records_(p.x), bytes_(k / kBlock * kCudaRecord) {}
    __device__ void fetch() {}
    __device__ void make() {
      for (uint32_t i = threadIdx.x * 16; i < bytes_; i += kRowThreads * 16) copy_async16(memory_ + i, records_ + i);
      copy_commit();
      copy_wait<0>();
      __syncthreads();
    }
    __device__ Input input() const { return memory_; }

   private:
    uint8_t* memory_;
    const uint8_t* records_;
    uint32_t bytes_;
  };
  static size_t input_bytes(uint32_t k) { return size_t{k} / kBlock * kCudaRecord; }
};

}  // namespace stet::cuda
