#include "kernels/rounding/rounding.h"
#include "replay/row_ops.h"

namespace stet {

void row_swiglu_limit(const Kernels&, const Command& c, const StepParams&, uint32_t row, uint32_t) {
  swiglu_limit_ref(c.in->row(row), c.in2->row(row), std::get<LimitSpec>(c.spec).limit, c.in->width, c.out->row(row));
  if (c.rounded) round_bf16(c.out->row(row), c.out->width);
}

}  // namespace stet
