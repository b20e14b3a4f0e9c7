#include <algorithm>

#include "replay/row_ops.h"

namespace stet {

void row_grouped(const Kernels& kernels, const Command& c, const StepParams&, uint32_t row, uint32_t part) {
  const uint32_t rows = c.matrix.rows / std::get<GroupedSpec>(c.spec).groups;
  const uint32_t first = part * kTileRows, group = first / rows;
  float tile[kTileRows];
  matvec_row_tile(kernels.matvec, c.matrix, part, c.in->row(row) + size_t{group} * c.matrix.cols, tile);
  std::copy_n(tile, kTileRows, c.out->row(row) + first);
}

}  // namespace stet
