#include "replay/row_ops.h"

namespace stet {

void row_rmsnorm(const Kernels& kernels, const Command& c, const StepParams& params, uint32_t row, uint32_t) {
  kernels.rmsnorm(c.in->row(c.first_row(params) + row), c.weight, c.eps, c.in->width, c.out->row(row));
}

}  // namespace stet
