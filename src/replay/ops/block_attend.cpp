#include "kernels/heads/heads.h"
#include "kernels/rounding/rounding.h"
#include "replay/row_ops.h"

namespace stet {

void row_block_attend(const Kernels&, const Command& c, const StepParams& params, uint32_t row, uint32_t part) {
  const UnionAttendSpec& spec = std::get<UnionAttendSpec>(c.spec);
  const uint32_t dim = spec.attend.rows.width;
  float* y = c.out->row(row) + size_t{part} * dim;
  block_attend_ref(spec.attend, part, params.position, c.in->row(row) + size_t{part} * dim, c.in2->row(0), params.rows,
                   y);
  rotate_tail_ref(y, dim, spec.rope.at(params.position + row), spec.rope.dim, true);
  if (spec.attend.rounded) round_bf16(y, dim);
}

}  // namespace stet
