#include <algorithm>

#include "replay/row_ops.h"

namespace stet {

void row_pool_row(const Kernels&, const Command& c, const StepParams& params, uint32_t row, uint32_t) {
  const PoolRowSpec& spec = std::get<PoolRowSpec>(c.spec);
  const PackedMatrix& position = spec.position;
  const uint32_t t = params.position + row, slot = t % position.rows, width = position.cols;
  const auto element = pack_traits(position.format).element;
  const uint8_t* tile = position.tile(slot / kTileRows);
  const float* z = c.in2->row(row);
  float* y = c.out->row(row);
  std::copy_n(c.in->row(row), width, y);
  for (uint32_t d = 0; d < width; ++d) y[width + d] = z[d] + element(tile, width, slot % kTileRows, d);
  std::copy_n(y, 2 * width, spec.rows.row(t));
}

}  // namespace stet
