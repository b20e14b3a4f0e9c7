#include <algorithm>

#include "kernels/rounding/rounding.h"
#include "replay/row_ops.h"

namespace stet {

void row_expert_down(const Kernels& kernels, const Command& c, const StepParams&, uint32_t row, uint32_t part) {
  const ExpertsSpec& spec = *std::get<std::shared_ptr<const ExpertsSpec>>(c.spec);
  const uint32_t first = part * kTileRows, n = std::min(kTileRows, c.out->width - first);
  expert_down_tile({kernels.matvec, kernels.quantize}, spec, c.in->row(row), c.in2->row(row), c.in3->row(row), part,
                   c.out->row(row));
  if (spec.rounded) round_bf16(c.out->row(row) + first, n);
}

}  // namespace stet
