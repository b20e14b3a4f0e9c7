#include <algorithm>

#include "replay/row_ops.h"

namespace stet {

void row_keep_row(const Kernels&, const Command& c, const StepParams& params, uint32_t row, uint32_t) {
  const uint32_t width = c.out->width;
  std::copy_n(c.in->row(row), width, c.out->row(row));
  std::copy_n(c.in->row(row), width, std::get<KeepSpec>(c.spec).rows.row(params.position + row));
}

}  // namespace stet
