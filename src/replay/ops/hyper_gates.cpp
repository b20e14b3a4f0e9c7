#include "replay/row_ops.h"

namespace stet {

void row_hyper_gates(const Kernels&, const Command& c, const StepParams&, uint32_t row, uint32_t) {
  const HyperSpec& spec = std::get<HyperSpec>(c.spec);
  hyper_gates_ref(spec, c.in->row(row), c.in->width / spec.streams, c.in2->row(row), c.out->row(row));
}

}  // namespace stet
