// MXFP4 on a device: there is no kernel, and models with such weights are refused there (replay/cuda/launches.cpp).
#pragma once

#include "formats/cuda_weights.cuh"

namespace stet::cuda {

template <>
struct CudaWeights<Format::mxfp4> {};

}  // namespace stet::cuda
