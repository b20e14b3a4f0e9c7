#include <algorithm>

#include "kernels/rounding/rounding.h"
#include "replay/row_ops.h"

namespace stet {

void row_grouped(const Kernels& kernels, const Command& c, const StepParams&, uint32_t row, uint32_t part) {
  const uint32_t rows = c.matrix.rows / std::get<GroupedSpec>(c.spec).groups;  // of a group
  const uint32_t first = part * kTileRows, end = std::min(first + kTileRows, c.matrix.rows);
  float tile[kTileRows];
  // A tile holds rows of several groups where these are short.
  for (uint32_t n = first; n < end;) {
    const uint32_t group = n / rows, stop = std::min(end, (group + 1) * rows);
    matvec_row_tile({kernels.matvec, kernels.quantize}, c.matrix, part, c.in->row(row) + size_t{group} * c.matrix.cols,
                    tile);
    std::copy(tile + (n - first), tile + (stop - first), c.out->row(row) + n);
    n = stop;
  }
  if (c.rounded) round_bf16(c.out->row(row) + first, end - first);
}

}  // namespace stet
