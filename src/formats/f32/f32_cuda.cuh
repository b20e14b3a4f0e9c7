// F32 on a device.
#pragma once

#include "formats/cuda_weights.cuh"

namespace stet::cuda {

template <>
struct CudaWeights<Format::f32> {
  using Element = float;
  __device__ static float value(Element x) { return x; }
};

}  // namespace stet::cuda
