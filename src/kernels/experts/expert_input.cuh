// The activations of a block of threads' row in shared memory, as a unit of products reads them.
#pragma once

#include "kernels/matvec/row_unit.cuh"

namespace stet::cuda {

// kernels/matvec/row_unit.cuh
template <typename Unit>
struct ExpertInput {
  static size_t bytes(uint32_t k, uint32_t runs) { return row_input_bytes(k * runs, Unit::kInteger); }
  // Runs of k elements, one behind the other, each quantised for itself: blocks of 32 end in their run.
  __device__ static typename Unit::Input make(uint8_t* memory, const float* in, uint32_t k, uint32_t runs) {
    const RowInput row = row_input(memory, k * runs, Unit::kInteger);
    RowMaker<Unit::kInteger> maker(row, {}, in, k * runs);
    maker.make([](float d, int32_t sum) { return Unit::second(d, sum); });
    return row;
  }
};

}  // namespace stet::cuda
