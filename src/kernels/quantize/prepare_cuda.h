// Activations of a product made on a device from rows of floats: as they are, or normalised first (kernels/rmsnorm), or joined from
// the parts of an attention (kernels/attend). One block of threads a row; where rows only become planes as they are, four groups of 128.
#pragma once

#include <cstdint>

#include "base/cuda/launch.h"
#include "formats/pack.h"

namespace stet {

// Where the activations of a product with one row come from, which makes them itself.
struct CudaRowSource {
  const float* in = nullptr;      // [row][k]
  const float* weight = nullptr;  // normalise with it; null: as they are
  float eps = 0.0f;
  bool from_head = false;         // row head_first of the pass, not row 0
  bool rounded = false;           // what was normalised is rounded to bf16
};

struct CudaPrepare {
  const float* in = nullptr;      // [row][width]; with `parts` unused
  uint32_t width = 0;             // K
  const float* weight = nullptr;  // normalise with it; null: as they are
  float eps = 0.0f;
  bool from_head = false;         // row 0 is row head_first of the pass
  bool rounded = false;           // what was normalised is rounded to bf16
  const float* parts = nullptr;   // attend_cuda.h: join them
  uint32_t heads = 0, head_dim = 0, part_chunks = 0;
  uint8_t* i8 = nullptr;          // kernels/cuda/activations.h; null: not wanted
  uint8_t* f32 = nullptr;
  uint8_t* planes = nullptr;      // for the formats of plane products (kernels/matvec/plane_products_cuda.h); width % 32 == 0
  ActKind planes_of = ActKind::e4m3;  // i8 or e4m3: how the rows are quantised for them
  float* out = nullptr;           // the rows themselves, [row][width]; null: not wanted
  uint32_t first_row = 0;         // of the pass; `parts` begin there, `in` and `out` do not
  uint32_t rows = 0;              // from first_row on, at most
  bool head = false;              // works on head_rows of the step
};

void launch_prepare(const CudaLaunch& on, const CudaStep* step, const CudaPrepare& prepare);

}  // namespace stet
