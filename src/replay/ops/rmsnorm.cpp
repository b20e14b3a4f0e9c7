#include "kernels/rounding/rounding.h"
#include "replay/row_ops.h"

namespace stet {

void row_rmsnorm(const Kernels& kernels, const Command& c, const StepParams& params, uint32_t row, uint32_t) {
  kernels.rmsnorm(c.in->row(c.first_row(params) + row), c.weight, c.eps, c.in->width, c.out->row(row));
  if (c.rounded) round_bf16(c.out->row(row), c.out->width);
}

}  // namespace stet
