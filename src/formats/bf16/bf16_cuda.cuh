// BF16 on a device.
#pragma once

#include "formats/cuda_weights.cuh"

namespace stet::cuda {

template <>
struct CudaWeights<Format::bf16> {
  using Element = uint16_t;
  __device__ static float value(Element x) { return bf16_value(x); }
};

}  // namespace stet::cuda
