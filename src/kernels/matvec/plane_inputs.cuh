// Activations put into the form that plane_unit.cuh multiplies, by all threads of a block.
#pragma once

#include "kernels/cuda/activations.h"
#include "kernels/matvec/plane_unit.cuh"
#include "kernels/quantize/plane_codes_cuda.cuh"
#include "kernels/quantize/row_input_cuda.cuh"

namespace stet::cuda {

// `runs` runs of k floats, one behind the other, become planes in place, each quantised for itself: memory has PlaneForm<kKind, 1>::bytes(k *
// runs). A group of 128 is a warp's; the last of a run may be shorter. The caller synchronises before and after.
template <ActKind kKind>
__device__ __forceinline__ void planes_in_place(uint8_t* memory, uint32_t k, uint32_t runs) {
  using Form = PlaneForm<kKind, 1>;
  static_assert(Form::kRecord == kBlock * sizeof(float));
  const uint32_t groups = (k + kPlaneGroup - 1) / kPlaneGroup;
#pragma unroll 1
  for (uint32_t group = threadIdx.x / kWarp; group < groups * runs; group += kRowThreads / kWarp) {
    const uint32_t run = group / groups, of_run = (group - run * groups) * kWarp + threadIdx.x % kWarp, quad = run * (k / 4) + of_run;
    const bool there = of_run < k / 4;
    const PlaneCodes c = plane_codes<kKind>(there ? reinterpret_cast<const float4*>(memory)[quad] : float4{});
    __syncwarp();  // the group was read
    if (!there) continue;
    Form::put(memory, 0, quad, c.codes);
    if (quad % 8 == 0) Form::put_scale(memory, k * runs, 0, quad / 8, c.dx);
  }
}

// Row i of x from row_of(i), a prepared row (kernels/cuda/activations.h), for i below `rows`. The caller synchronises after.
template <ActKind kKind, uint32_t kMostRows, typename RowOf>
__device__ __forceinline__ void put_prepared(uint8_t* memory, uint32_t k, uint32_t rows, const RowOf& row_of) {
  using Form = PlaneForm<kKind, kMostRows>;
#pragma unroll 1
  for (uint32_t row = 0; row < rows; ++row) {
    const uint8_t* from = row_of(row);
    const float* scales = reinterpret_cast<const float*>(from + k);
#pragma unroll 2
    for (uint32_t i = threadIdx.x; i < k / 16; i += blockDim.x) {
      const uint4 codes = __ldcg(reinterpret_cast<const uint4*>(from) + i);
      Form::put(memory, row, 4 * i, codes.x);
      Form::put(memory, row, 4 * i + 1, codes.y);
      Form::put(memory, row, 4 * i + 2, codes.z);
      Form::put(memory, row, 4 * i + 3, codes.w);
    }
    for (uint32_t i = threadIdx.x; i < k / kBlock; i += blockDim.x)
      Form::put_scale(memory, k, row, i, __ldcg(scales + i));
  }
}

// The one row of a product, made from its source. Shared memory: bytes(k).
template <ActKind kKind>
class PlaneSource {
 public:
  __host__ __device__ static constexpr size_t bytes(uint32_t k) { return kNormLanes * 4 + PlaneForm<kKind, 1>::bytes(k); }
  __device__ PlaneSource(uint8_t* memory, const CudaProduct& p, const CudaStep* step, uint32_t k)
      : planes_(memory + kNormLanes * 4),
        k_(k),
        maker_(row_input(memory, k, false), p.source, p.source.in + (p.source.from_head ? size_t{step->head_first} * k : 0), k) {}
  __device__ void fetch() { maker_.fetch(); }
  __device__ void make(const CudaProduct&, uint32_t, uint32_t) {
    maker_.make([](float, int32_t) { return 0.0f; });
    planes_in_place<kKind>(planes_, k_, 1);
    __syncthreads();
  }
  __device__ PlaneInput input() const { return PlaneForm<kKind, 1>::input(planes_, k_); }

 private:
  uint8_t* planes_;
  uint32_t k_;
  RowMaker<false> maker_;
};

// Rows of a product that another kernel prepared.
template <ActKind kKind, uint32_t kMostRows>
class PlaneRows {
 public:
  __host__ __device__ static constexpr size_t bytes(uint32_t k) { return PlaneForm<kKind, kMostRows>::bytes(k); }
  __device__ PlaneRows(uint8_t* memory, const CudaProduct&, const CudaStep*, uint32_t k) : memory_(memory), k_(k) {}
  __device__ void fetch() {}
  __device__ void make(const CudaProduct& p, uint32_t first_row, uint32_t rows) {
    const uint8_t* x = p.x + first_row * cuda_plane_row(k_);
    put_prepared<kKind, kMostRows>(memory_, k_, rows, [&](uint32_t row) { return x + row * cuda_plane_row(k_); });
    __syncthreads();
  }
  __device__ PlaneInput input() const { return PlaneForm<kKind, kMostRows>::input(memory_, k_); }

 private:
  uint8_t* memory_;
  uint32_t k_;
};

}  // namespace stet::cuda
