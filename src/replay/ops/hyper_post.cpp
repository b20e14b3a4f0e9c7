#include "kernels/rounding/rounding.h"
#include "replay/row_ops.h"

namespace stet {

void row_hyper_post(const Kernels&, const Command& c, const StepParams&, uint32_t row, uint32_t) {
  const uint32_t streams = std::get<HyperSpec>(c.spec).streams;
  hyper_post_ref(streams, c.in->row(row), c.in2->row(row), c.in->width, c.in3->row(row), c.out->row(row));
  if (c.rounded) round_bf16(c.out->row(row), c.out->width);
}

}  // namespace stet
