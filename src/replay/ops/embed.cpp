#include "base/error.h"
#include "replay/row_ops.h"

namespace stet {

void row_embed(const Kernels&, const Command& c, const StepParams& params, uint32_t row, uint32_t) {
  const uint32_t token = static_cast<uint32_t>(params.tokens[row]);
  STET_CHECK(token < c.matrix.rows);
  const auto element = pack_traits(c.matrix.format).element;
  const uint8_t* tile = c.matrix.tile(token / kTileRows);
  float* out = c.out->row(row);
  for (uint32_t k = 0; k < c.matrix.cols; ++k) out[k] = element(tile, c.matrix.cols, token % kTileRows, k);
}

}  // namespace stet
