#include <algorithm>

#include "replay/row_ops.h"

namespace stet {

void row_load_row(const Kernels&, const Command& c, const StepParams& params, uint32_t row, uint32_t) {
  std::copy_n(std::get<KeepSpec>(c.spec).rows.row(params.position + row), c.out->width, c.out->row(row));
}

}  // namespace stet
