// What a warp does with a run of columns of a tile, in the order of docs/numerics.md section 3. A run ends in its
// segment.
//
//   kOutputs     rows of activations, at most
//   kSegments    segments that a warp works on at a time: of two, each half of the warp has one
//   kColumns     of a run, at most; kBytes: of such a run. bytes(columns), offset(column): of any, in a tile
//   Sums         of a lane: what add() adds to, joined() joins, and leave() stores as partial[output][row]
//   Input        activations in shared memory, which a Maker makes: fetch() before, make() after the wait
#pragma once

#include "kernels/matvec/integer_runs.cuh"
#include "kernels/matvec/matvec_cuda.h"
#include "kernels/quantize/row_input_cuda.cuh"

namespace stet::cuda {

// Makes the row of a product from its source.
template <typename Unit>
class SourceMaker {
 public:
  __device__ SourceMaker(uint8_t* memory, const CudaProduct& p, const CudaStep* step, uint32_t k)
      : row_(row_input(memory, k, Unit::kInteger)),
        maker_(row_, p.source, p.source.in + (p.source.from_head ? size_t{step->head_first} * k : 0), k) {}
  __device__ void fetch() { maker_.fetch(); }
  __device__ void make() {
    maker_.make([](float d, int32_t sum) { return Unit::second(d, sum); });
  }
  __device__ const RowInput& input() const { return row_; }

 private:
  const RowInput row_;
  RowMaker<Unit::kInteger> maker_;
};

// Integer weights: a lane has rows 2g and 2g + 1 (g = lane / 4) of an m16n8k32 product, whose first column is the row
// of activations.
template <Format kFormat>
struct RowUnit : IntegerRuns<kFormat, RowUnit<kFormat>> {
  using W = CudaWeights<kFormat>;
  using Sums = float2;
  static constexpr uint32_t kOutputs = 1;
  using Input = RowInput;
  using Maker = SourceMaker<RowUnit>;
  static size_t input_bytes(uint32_t k) { return row_input_bytes(k, true); }

  // BlockMeta::second: what is added to a minimum, or what stands in the product beside isum.
  __device__ static float second(float d, int32_t sum) {
    return W::kMinimum ? __fmul_rn(d, static_cast<float>(sum)) : static_cast<float>(12582912 + W::kOffset * sum);
  }
  // float(isum) of both rows.
  __device__ static float2 isums(const uint8_t* codes, const uint8_t* scales, uint32_t lane, uint2 b,
                                 const BlockMeta& m) {
    if constexpr (W::kHalves) {
      const int32_t highs[2] = {m.high, m.high};
      float isum[4];
      W::product(codes, scales, lane, {b.x, b.y, {m.d, m.d}, {m.sum, m.sum}}, highs, isum);
      return {isum[0], isum[2]};
    } else {
      uint32_t a[4];
      W::fragment(codes, fragment_offset(lane), lane, a);
      constexpr int32_t kZero[4] = {kIntegerInFloat, kIntegerInFloat, kIntegerInFloat, kIntegerInFloat};
      int32_t c[4];
      mma32(c, a, b.x, b.y, kZero);
      const float base = W::kMinimum ? 12582912.0f : m.second;
      return {__fsub_rn(__int_as_float(c[0]), base), __fsub_rn(__int_as_float(c[2]), base)};
    }
  }
  __device__ static void add_block(const uint8_t* codes, const uint8_t* scales, const RowInput& x, uint32_t block,
                                   Sums& sums) {
    const uint32_t lane = threadIdx.x % kWarp, g = lane / 4;
    const BlockMeta m = x.blocks[block];
    const float2 isum =
        isums(codes, scales, lane, *reinterpret_cast<const uint2*>(x.codes + size_t{block} * kBlock + lane % 4 * 8), m);
    const float2 d = W::scale(scales, g);
    sums.x = __fmaf_rn(__fmul_rn(d.x, m.d), isum.x, sums.x);
    sums.y = __fmaf_rn(__fmul_rn(d.y, m.d), isum.y, sums.y);
    if constexpr (W::kMinimum) {
      const float2 least = W::minimum(scales, g);
      sums.x = __fmaf_rn(least.x, m.second, sums.x);
      sums.y = __fmaf_rn(least.y, m.second, sums.y);
    }
  }
  __device__ static Sums joined(const Sums& left, const Sums& right) {
    return {__fadd_rn(left.x, right.x), __fadd_rn(left.y, right.y)};
  }
  __device__ static void leave(const Sums& sums, float* partial) {
    const uint32_t lane = threadIdx.x % kWarp;
    if (lane % 4 == 0) *reinterpret_cast<float2*>(partial + lane / 2) = sums;
  }
};

// Float weights: a lane has one row, half a warp a segment.
template <Format kFormat>
requires(!kIntegerWeights<kFormat>) struct RowUnit<kFormat> {
  using W = CudaWeights<kFormat>;
  using Element = typename W::Element;
  using Sums = float;
  static constexpr bool kInteger = false;
  static constexpr uint32_t kOutputs = 1, kSegments = 2;
  using Input = RowInput;
  using Maker = SourceMaker<RowUnit>;
  static size_t input_bytes(uint32_t k) { return row_input_bytes(k, kInteger); }
  static constexpr uint32_t kBytes = 1024, kColumnBytes = kTileRows * sizeof(Element), kColumns = kBytes / kColumnBytes;
  __device__ static uint32_t bytes(uint32_t columns) { return columns * kColumnBytes; }
  __device__ static size_t offset(uint32_t column) { return size_t{column} * kColumnBytes; }

  __device__ static void add(const uint8_t* unit, uint32_t columns, const RowInput& x, uint32_t column, Sums& sum) {
    const Element* w = reinterpret_cast<const Element*>(unit) + threadIdx.x % kTileRows;
    const float* v = x.values + column;
    uint32_t k = 0;
#pragma unroll 4
    for (; k + 4 <= columns; k += 4) {
      const float4 a = *reinterpret_cast<const float4*>(v + k);
      sum = __fmaf_rn(W::value(w[(k + 0) * kTileRows]), a.x, sum);
      sum = __fmaf_rn(W::value(w[(k + 1) * kTileRows]), a.y, sum);
      sum = __fmaf_rn(W::value(w[(k + 2) * kTileRows]), a.z, sum);
      sum = __fmaf_rn(W::value(w[(k + 3) * kTileRows]), a.w, sum);
    }
#pragma unroll 1
    for (; k < columns; ++k) sum = __fmaf_rn(W::value(w[k * kTileRows]), v[k], sum);
  }
  __device__ static float second(float, int32_t) { return 0.0f; }
  __device__ static Sums joined(Sums left, Sums right) { return __fadd_rn(left, right); }
  __device__ static void leave(Sums sum, float* partial) {
    sum = __fadd_rn(sum, __shfl_xor_sync(kAll, sum, 16));
    if (threadIdx.x % kWarp < kTileRows) partial[threadIdx.x % kWarp] = sum;
  }
};

}  // namespace stet::cuda
