#include <algorithm>

#include "replay/row_ops.h"

namespace stet {

void row_repeat(const Kernels&, const Command& c, const StepParams& params, uint32_t row, uint32_t) {
  const float* in = c.in->row(c.first_row(params) + row);
  for (uint32_t i = 0; i < c.out->width; i += c.in->width) std::copy_n(in, c.in->width, c.out->row(row) + i);
}

}  // namespace stet
