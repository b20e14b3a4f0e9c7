#include "kernels/heads/heads.h"
#include "kernels/rounding/rounding.h"
#include "replay/row_ops.h"

namespace stet {

void row_union_attend(const Kernels&, const Command& c, const StepParams& params, uint32_t row, uint32_t part) {
  const UnionAttendSpec& spec = std::get<UnionAttendSpec>(c.spec);
  const uint32_t t = params.position + row, dim = spec.attend.rows.width;
  float* y = c.out->row(row) + size_t{part} * dim;
  union_attend_ref(spec.attend, part, t, c.in->row(row) + size_t{part} * dim,
                   c.in2 == nullptr ? nullptr : c.in2->row(row), y);
  rotate_tail_ref(y, dim, spec.rope.at(t), spec.rope.dim, true);
  if (spec.attend.rounded) round_bf16(y, dim);
}

}  // namespace stet
