#include <algorithm>

#include "replay/row_ops.h"

namespace stet {

void row_slice(const Kernels&, const Command& c, const StepParams&, uint32_t row, uint32_t) {
  std::copy_n(c.in->row(row) + std::get<SliceSpec>(c.spec).first, c.out->width, c.out->row(row));
}

}  // namespace stet
