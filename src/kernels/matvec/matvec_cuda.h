// Matrix-vector products on a device, bits as matvec.h. The matrices of one launch share K, the kind of activations and the format.
#pragma once

#include "formats/format.h"
#include "base/cuda/launch.h"
#include "kernels/quantize/prepare_cuda.h"

namespace stet {

constexpr uint32_t kCudaMatrices = 4;  // of one launch

// Addresses are the device's.
struct CudaMatrix {
  const uint8_t* data = nullptr;
  uint32_t rows = 0;
  float* out = nullptr;  // [row of x][width]
  uint32_t width = 0;
};

struct CudaProduct {
  Format format = Format::f32;
  ActKind input = ActKind::f32;  // what x holds
  uint32_t k = 0;
  uint64_t tile_bytes = 0;
  uint32_t matrices = 0;
  CudaMatrix matrix[kCudaMatrices];
  bool accumulate = false;  // out + product instead of product
  bool rounded = false;     // the product is rounded to bf16, and so is the sum with out
  bool gated = false;       // matrix 0 is the gate, 1 the up projection: matrix[0].out = silu(gate) * up; not for plane products
  const uint8_t* x = nullptr;  // kernels/cuda/activations.h; null: of one row, made from `source` by the product itself
  CudaRowSource source;
  uint32_t rows = 0;           // of x, at most: the launch is shaped for them
  bool head = false;           // works on head_rows of the step, not on rows
};

// Whether there are kernels for weights of the format.
bool has_cuda_weights(Format format);

// Integer, float or plane products (plane_products_cuda.h), by the format. Plane products need `input`: i8 or e4m3.
void launch_product(const CudaLaunch& on, const CudaStep* step, const CudaProduct& product);

}  // namespace stet
