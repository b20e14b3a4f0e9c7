#include <algorithm>

#include "kernels/rounding/rounding.h"
#include "replay/row_ops.h"

namespace stet {

void row_expert_down(const Kernels& kernels, const Command& c, const StepParams&, uint32_t row, uint32_t part) {
  const ExpertsSpec& spec = *std::get<std::shared_ptr<const ExpertsSpec>>(c.spec);
  const TileRun tiles = tiles_of_part(part, spec.down[0].tiles());
  expert_down_tiles({kernels.matvec, kernels.quantize}, spec, c.in->row(row), c.in2->row(row), c.in3->row(row), tiles,
                    c.out->row(row));
  const uint32_t first = tiles.first * kTileRows, end = std::min(tiles.end * kTileRows, c.out->width);
  if (spec.rounded) round_bf16(c.out->row(row) + first, end - first);
}

}  // namespace stet
