#include "replay/row_ops.h"

namespace stet {

void row_expert_gate(const Kernels& kernels, const Command& c, const StepParams&, uint32_t row, uint32_t part) {
  const ExpertsSpec& spec = *std::get<std::shared_ptr<const ExpertsSpec>>(c.spec);
  const uint32_t inner = spec.gate[0].rows, tiles = spec.gate[0].tiles(), slot = part / tiles;
  expert_gate_tile({kernels.matvec, kernels.quantize}, spec, c.in->row(row), c.in2->row(row), slot, part % tiles,
                   c.out->row(row) + size_t{slot} * inner);
}

}  // namespace stet
