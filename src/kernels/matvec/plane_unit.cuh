// Products of F8_E4M3 and MXFP4 weights, by activations of kind e4m3 or i8, as a warp makes them: bits of docs/numerics.md 3.1 and
// 3.3. Weights and activations are cut in planes of integers that f16 holds, and tensor cores add up a block of 32 exactly.
//
//   PlaneForm<kind, rows>             how up to `rows` rows of activations lie in shared memory: 1, 4 or 8
//   PlaneUnit<format, kind, rows>     what a warp does with a tile of 16 rows of weights and those rows
//
// A kernel puts the activations there (PlaneForm::put, one word of four codes at a time; codes are those of kernels/cuda/activations.h
// or made on the spot by quantize_planes.cuh) and synchronises its threads. Then a warp makes a segment of a tile by
//
//   typename Unit::Sums sums = {};
//   Unit::add(tile + Unit::offset(column), columns, input, column, sums);  // columns: a multiple of 32, column one of 128
//   Unit::leave(sums, partial);                                            // partial[row of x][row of the tile]
//
// once for the whole segment, or again and again for what follows in it; the tree over segments is the caller's (Unit::joined(left, right)
// of two neighbours, or after leave()). Weights may lie in global or in shared memory. To ask for them early: Unit::words() of a block
// before wait_for_previous(), Unit::add_words() behind it. What rows of x hold that nobody has put is of no account for the others.
// Every lane of the warp takes part in add, add_words and add_block.
#pragma once

#include "formats/each_cuda.cuh"
#include "kernels/matvec/integer_runs.cuh"

namespace stet::cuda {

// Activations in shared memory.
struct PlaneInput {
  const uint8_t* records;  // [block of 32][row][plane: whole, fraction; of i8 one][t: 4][eight f16]: columns 4t .. 4t + 3, 16 + 4t .. 19 + 4t
  const float* scales;     // [block][row]
};

// Planes of activations are 2^7 times integers: 448 and 511 fit, and what MXFP4's codes are too small by leaves again.
template <ActKind kKind, uint32_t kRows>
struct PlaneForm {
  static_assert(kKind != ActKind::f32 && (kRows == 1 || kRows == 4 || kRows == 8));
  static constexpr uint32_t kPlanes = kKind == ActKind::e4m3 ? 2 : 1;
  static constexpr uint32_t kPlaneBytes = 2 * kBlock;
  // A single row's record has the size of the block's floats, so that they become planes in place.
  static constexpr uint32_t kRecord = kRows == 1 ? 4 * kBlock : kRows * kPlanes * kPlaneBytes;

  __host__ __device__ static constexpr size_t record_bytes(uint32_t k) { return size_t{k} / kBlock * kRecord; }
  __host__ __device__ static constexpr size_t scale_bytes(uint32_t k) {
    return (size_t{k} / kBlock * kRows * 4 + 15) / 16 * 16;
  }
  __host__ __device__ static constexpr size_t bytes(uint32_t k) { return record_bytes(k) + scale_bytes(k); }
  // Of memory that has bytes(k), aligned to 16.
  __device__ static PlaneInput input(uint8_t* memory, uint32_t k) {
    return {memory, reinterpret_cast<const float*>(memory + record_bytes(k))};
  }

  // Four codes, of columns 4 * quad .. 4 * quad + 3 of a row.
  __device__ static void put(uint8_t* memory, uint32_t row, uint32_t quad, uint32_t codes) {
    uint8_t* at = memory + quad / 8 * kRecord + row * kPlanes * kPlaneBytes + quad % 4 * 16 + quad / 4 % 2 * 8;
    constexpr uint32_t k2to7 = 0x58005800u, k2to15 = 0x78007800u;
    uint32_t plane[2][2];
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) {
      if constexpr (kKind == ActKind::i8) {
        plane[0][half] = mul_pair(int8_pair(codes, half), k2to7);
      } else {
        const PlanePair p = planes_of_pair(e4m3_pair(codes, half));
        const uint32_t low = mul_pair(p.fraction, k2to15);
        plane[0][half] = mul_pair(p.whole, k2to7), plane[1][half] = add_pair(low, low);
      }
    }
    *reinterpret_cast<uint2*>(at) = {plane[0][0], plane[0][1]};
    if constexpr (kPlanes == 2) *reinterpret_cast<uint2*>(at + kPlaneBytes) = {plane[1][0], plane[1][1]};
  }
  __device__ static void put_scale(uint8_t* memory, uint32_t k, uint32_t row, uint32_t block, float dx) {
    reinterpret_cast<float*>(memory + record_bytes(k))[block * kRows + row] = dx;
  }
};

// 2^(scale - 127); NaN of 255 comes with what times_zero() adds to it.
__device__ __forceinline__ float plane_scale_of(uint32_t scale) {
  const uint32_t bits = scale << 23;
  return __uint_as_float(bits > 0x00400000u ? bits : 0x00400000u);
}

template <Format kFormat, ActKind kKind, uint32_t kMostRows>
struct PlaneUnit : IntegerRuns<kFormat, PlaneUnit<kFormat, kKind, kMostRows>> {
  using W = CudaWeights<kFormat>;
  using Form = PlaneForm<kKind, kMostRows>;
  using Input = PlaneInput;
  static constexpr uint32_t kOutputs = kMostRows;
  // Products of 8 columns: a column is a plane of a row of x.
  static constexpr uint32_t kColumnRows = 8 / Form::kPlanes, kProducts = kMostRows > kColumnRows ? kMostRows / kColumnRows : 1;
  // With one row of x all columns are its own, and a lane makes the outputs of one row of the tile: 2g + t % 2. Else of rows 2g and
  // 2g + 1 and, in each product, of row t of x (of i8, rows 2t and 2t + 1).
  static constexpr bool kSingle = kMostRows == 1;
  static constexpr uint32_t kXRows = kSingle ? 1 : 2 / Form::kPlanes, kSums = kSingle ? 1 : 2 * kXRows;
  struct Sums {
    float of[kProducts][kSums];  // [][row of x * 2 + row of the tile]
  };
  struct Words {
    typename W::Words codes;
    uint32_t scales;  // of rows 2g and 2g + 1
  };

  __device__ static Words words(const uint8_t* codes, const uint8_t* scales) {
    const uint32_t lane = threadIdx.x % kWarp;
    return {W::words(codes, lane), *reinterpret_cast<const uint16_t*>(scales + lane / 4 * 2)};
  }
  __device__ static void add_words(const Words& w, const Input& x, uint32_t block, Sums& sums) {
    const uint32_t lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
    uint4 b[kProducts];
#pragma unroll
    for (uint32_t i = 0; i < kProducts; ++i)
      b[i] = *reinterpret_cast<const uint4*>(x.records + block * Form::kRecord +
                                             ((g / Form::kPlanes) % kMostRows + i * kColumnRows) *
                                                 (Form::kPlanes * Form::kPlaneBytes) +
                                             g % Form::kPlanes * Form::kPlaneBytes + t * 16);
    constexpr float kZero[4] = {};
    float c[kProducts][W::kPlanes][4];
#pragma unroll
    for (uint32_t step = 0; step < 2; ++step) {
      uint32_t a[W::kPlanes][4];
      W::fragment(w.codes, step, a);
#pragma unroll
      for (uint32_t i = 0; i < kProducts; ++i)
#pragma unroll
        for (uint32_t plane = 0; plane < W::kPlanes; ++plane)
          mma_f16(c[i][plane], a[plane], step == 0 ? b[i].x : b[i].z, step == 0 ? b[i].y : b[i].w,
                  step == 0 ? kZero : c[i][plane]);
    }
    float dw[2];
    scales_of(w.scales, dw);
#pragma unroll
    for (uint32_t i = 0; i < kProducts; ++i) add_product(c[i], dw, x.scales + block * kMostRows, i, sums.of[i]);
  }
  __device__ static void add_block(const uint8_t* codes, const uint8_t* scales, const Input& x, uint32_t block,
                                   Sums& sums) {
    add_words(words(codes, scales), x, block, sums);
  }

  __device__ static Sums joined(const Sums& left, const Sums& right) {
    Sums sums;
#pragma unroll
    for (uint32_t i = 0; i < kProducts; ++i)
#pragma unroll
      for (uint32_t j = 0; j < kSums; ++j) sums.of[i][j] = __fadd_rn(left.of[i][j], right.of[i][j]);
    return sums;
  }
  // partial[row of x][row of the tile], of kMostRows rows of x.
  __device__ static void leave(const Sums& sums, float* partial) {
    const uint32_t lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
    if constexpr (kSingle) {
      if (t < 2) partial[2 * g + t] = sums.of[0][0];
    } else {
#pragma unroll
      for (uint32_t i = 0; i < kProducts; ++i)
#pragma unroll
        for (uint32_t j = 0; j < kXRows; ++j)
          if (const uint32_t row = i * kColumnRows + t * kXRows + j; row < kMostRows)
            *reinterpret_cast<float2*>(partial + row * kTileRows + 2 * g) = {sums.of[i][2 * j], sums.of[i][2 * j + 1]};
    }
  }

 private:
  static constexpr float kUnit = W::template kUnit<kKind>;

  // Of the lane's rows of the tile: with one row of x, of its own alone.
  __device__ static void scales_of(uint32_t scales, float dw[2]) {
    if constexpr (kSingle) {
      dw[0] = __fmul_rn(plane_scale_of(threadIdx.x % 2 == 0 ? scales & 255u : scales >> 8), kUnit);
    } else {
      dw[0] = __fmul_rn(plane_scale_of(scales & 255u), kUnit);
      dw[1] = __fmul_rn(plane_scale_of(scales >> 8), kUnit);
    }
  }
  __device__ static void add_product(const float (&c)[W::kPlanes][4], const float dw[2], const float* dx, uint32_t product,
                                     float (&sums)[kSums]) {
    if constexpr (kSingle) {
      const bool odd = threadIdx.x % 2 != 0;
      float own[W::kPlanes][2];
#pragma unroll
      for (uint32_t plane = 0; plane < W::kPlanes; ++plane)
#pragma unroll
        for (uint32_t j = 0; j < 2; ++j) own[plane][j] = odd ? c[plane][2 + j] : c[plane][j];
      add_sum(own, 0, dw[0], dx[0], sums[0]);
    } else {
#pragma unroll
      for (uint32_t j = 0; j < kXRows; ++j) {
        const float of_row = dx[(product * kColumnRows + threadIdx.x % 4 * kXRows + j) % kMostRows];
#pragma unroll
        for (uint32_t r = 0; r < 2; ++r) {
          float own[W::kPlanes][2];
#pragma unroll
          for (uint32_t plane = 0; plane < W::kPlanes; ++plane)
            own[plane][0] = c[plane][2 * r], own[plane][1] = c[plane][2 * r + 1];
          add_sum(own, j, dw[r], of_row, sums[2 * j + r]);
        }
      }
    }
  }
  // own: by plane of the weights, of two columns: the planes of a row of x, or (i8) two rows, of which j is meant.
  __device__ static void add_sum(const float (&own)[W::kPlanes][2], uint32_t j, float dw, float dx, float& sum) {
    // Zero times a scale is zero but for that of 255, which is infinite here: then the block's term is NaN.
    const float scale = __fmaf_rn(dw, dx, __fmul_rn(dw, 0.0f));
    sum = __fmaf_rn(scale, block_sum(own, j), sum);
  }
  // The exact sums come as multiples: whole by whole of 2^7, whole by fraction of the weights' fraction of 2^-2.
  __device__ static float block_sum(const float (&own)[W::kPlanes][2], uint32_t j) {
    if constexpr (W::kPlanes == 1) {
      return kKind == ActKind::i8 ? own[0][j] : __fmaf_rn(512.0f, own[0][0], own[0][1]);
    } else if constexpr (kKind == ActKind::i8) {
      return __fmul_rn(__fadd_rn(own[0][j], own[1][j]), 4.0f);
    } else {
      const float middle = __fmaf_rn(512.0f, own[1][0], own[0][1]);  // exact: 2^7 times an integer below 2^24
      return __fmul_rn(__fadd_rn(__fmaf_rn(512.0f, own[0][0], middle), own[1][1]), 4.0f);
    }
  }
};

}  // namespace stet::cuda
