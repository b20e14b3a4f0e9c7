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

// kernels/matvec/plane_unit.cuh: planes take the places of their floats.
template <Format kFormat, ActKind kKind>
struct TaskInput<PlaneUnit<kFormat, kKind, 1>> {
  using Form = PlaneForm<kKind, 1>;
  static size_t bytes(uint32_t k, uint32_t runs) { return row_input_bytes(0, false) + Form::bytes(k * runs); }
  __device__ static PlaneInput make(uint8_t* memory, const float* in, uint32_t k, uint32_t runs) {
    const RowInput row = row_input(memory, k * runs, false);
    RowMaker<false> maker(row, {}, in, k * runs);
    maker.make([](float, int32_t) { return 0.0f; });
    uint8_t* planes = reinterpret_cast<uint8_t*>(row.values);
    planes_in_place<kKind>(planes, k, runs);
    __syncthreads();
    return Form::input(planes, k * runs);
  }
};

}  // namespace stet::cuda
