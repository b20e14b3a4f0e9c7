#include "replay/row_ops.h"

namespace stet {

// A part is some tiles of one slot.
void row_expert_gate(const Kernels& kernels, const Command& c, const StepParams&, uint32_t row, uint32_t part) {
  const ExpertsSpec& spec = *std::get<std::shared_ptr<const ExpertsSpec>>(c.spec);
  const uint32_t inner = spec.gate[0].rows, tiles = spec.gate[0].tiles(), parts = parts_of(tiles), slot = part / parts;
  expert_gate_tiles({kernels.matvec, kernels.quantize}, spec, c.in->row(row), c.in2->row(row), slot,
                    tiles_of_part(part % parts, tiles), c.out->row(row) + size_t{slot} * inner);
}

}  // namespace stet
