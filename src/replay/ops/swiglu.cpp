#include "replay/row_ops.h"

namespace stet {

void row_swiglu(const Kernels& kernels, const Command& c, const StepParams&, uint32_t row, uint32_t) {
  kernels.swiglu(c.in->row(row), c.in2->row(row), c.in->width, c.out->row(row));
}

}  // namespace stet
