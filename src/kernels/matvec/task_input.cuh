// The activations of a block of threads in shared memory, made from floats, as a unit of products reads them: runs of k elements, one
// behind the other, each quantised for itself.
#pragma once

#include "kernels/matvec/matvec_cuda.h"
#include "kernels/matvec/plane_inputs.cuh"
#include "kernels/matvec/row_unit.cuh"

namespace stet::cuda {

// kernels/matvec/row_unit.cuh, integer weights: blocks of 32 end with their run.
template <typename Unit>
struct TaskInput {
  static size_t bytes(uint32_t k, uint32_t runs) { return row_input_bytes(k * runs, true); }
  __device__ static typename Unit::Input make(uint8_t* memory, const float* in, uint32_t k, uint32_t runs) {
    const RowInput row = row_input(memory, k * runs, true);
    RowMaker<true> maker(row, {}, in, k * runs);
    maker.make([](float d, int32_t sum) { return Unit::second(d, sum); });
    return row;
  }
};

// kernels/matvec/plane_unit.cuh: groups of 128, the last of a run may be shorter. Planes take the places of their floats.
template <Format kFormat, ActKind kKind>
struct TaskInput<PlaneUnit<kFormat, kKind, 1>> {
  using Form = PlaneForm<kKind, 1>;
  static size_t bytes(uint32_t k, uint32_t runs) { return row_input_bytes(0, false) + Form::bytes(k * runs); }
  __device__ static PlaneInput make(uint8_t* memory, const float* in, uint32_t k, uint32_t runs) {
    const RowInput row = row_input(memory, k * runs, false);
    RowMaker<false> maker(row, {}, in, k * runs);
    maker.make([](float, int32_t) { return 0.0f; });
    uint8_t* planes = reinterpret_cast<uint8_t*>(row.values);
    const uint32_t groups = (k + kPlaneGroup - 1) / kPlaneGroup;
#pragma unroll 1
    for (uint32_t group = threadIdx.x / kWarp; group < groups * runs; group += kRowThreads / kWarp) {
      const uint32_t run = group / groups, of_run = (group - run * groups) * kWarp + threadIdx.x % kWarp, quad = run * (k / 4) + of_run;
      const bool there = of_run < k / 4;
      const PlaneCodes c = plane_codes<kKind>(there ? reinterpret_cast<const float4*>(planes)[quad] : float4{});
      __syncwarp();  // the group was read
      if (!there) continue;
      Form::put(planes, 0, quad, c.codes);
      if (quad % 8 == 0) Form::put_scale(planes, k * runs, 0, quad / 8, c.dx);
    }
    __syncthreads();
    return Form::input(planes, k * runs);
  }
};

}  // namespace stet::cuda
