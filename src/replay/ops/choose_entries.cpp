#include "replay/row_ops.h"

namespace stet {

void row_choose_entries(const Kernels&, const Command& c, const StepParams& params, uint32_t row, uint32_t) {
  choose_entries_ref(std::get<ChooseSpec>(c.spec), params.position + row, c.in->row(row), c.in2->row(row),
                     c.out->row(row));
}

}  // namespace stet
