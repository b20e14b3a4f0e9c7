// Products of F8_E4M3 and MXFP4 weights on a device, by activations of kind e4m3 or i8: bits of docs/numerics.md 3.1 and 3.3. x holds rows
// of planes (kernels/cuda/activations.h); without x the product makes its one row from `source`. Not for gated launches.
#pragma once

#include "kernels/matvec/matvec_cuda.h"

namespace stet {

// Whether such products read weights of the format.
bool has_plane_products(Format format);

// Any number of rows; eight or four of them read the weights together.
void launch_plane_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& product);

}  // namespace stet
