#include "replay/row_ops.h"

namespace stet {

void row_scale(const Kernels& kernels, const Command& c, const StepParams&, uint32_t row, uint32_t) {
  kernels.scale(c.in->row(row), c.weight, c.in->width, c.out->row(row));
}

}  // namespace stet
