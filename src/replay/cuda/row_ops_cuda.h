// The row ops of row_ops.def on a device, as commands of their own: what eager lists run, and the embedding of every
// list. (Norms are prepare_cuda.h with rows out.)
#pragma once

#include "formats/format.h"
#include "base/cuda/launch.h"

namespace stet {

struct CudaEmbed {
  Format format = Format::f32;
  const uint8_t* table = nullptr;  // packed
  uint32_t k = 0;
  uint64_t tile_bytes = 0;
  float* out = nullptr;  // [row][k]
  uint32_t rows = 0;     // at most
};

// out = the row of the table of each token of the step.
void launch_embed(const CudaLaunch& on, const CudaStep* step, const CudaEmbed& embed);
// out = silu(gate) * up, [rows of the pass][width], at most `rows` of them.
void launch_swiglu(const CudaLaunch& on, const CudaStep* step, const float* gate, const float* up, uint32_t width,
                   uint32_t rows, float* out);

}  // namespace stet
