#include "kernels/quantize/quantize.h"
#include "kernels/rounding/rounding.h"
#include "replay/row_ops.h"

namespace stet {

void row_round_e4m3(const Kernels&, const Command& c, const StepParams&, uint32_t row, uint32_t part) {
  const uint32_t run = std::get<RoundSpec>(c.spec).run;
  round_e4m3_ref(c.in->row(row) + size_t{part} * run, run, kPlaneGroup, c.out->row(row) + size_t{part} * run);
}

}  // namespace stet
