#include <algorithm>

#include "kernels/heads/heads.h"
#include "kernels/rounding/rounding.h"
#include "replay/row_ops.h"

namespace stet {

void row_turn_heads(const Kernels&, const Command& c, const StepParams& params, uint32_t row, uint32_t part) {
  const HeadsSpec& spec = std::get<HeadsSpec>(c.spec);
  const float* x = c.in->row(row) + size_t{part} * spec.head_dim;
  float* y = c.out->row(row) + size_t{part} * spec.head_dim;
  if (spec.unit && spec.rounded) {
    unit_head_bf16_ref(x, spec.head_dim, spec.eps, y);
  } else if (spec.unit) {
    unit_head_ref(x, spec.head_dim, spec.eps, y);
  } else {
    std::copy_n(x, spec.head_dim, y);
  }
  rotate_tail_ref(y, spec.head_dim, spec.rope.at(params.position + row), spec.rope.dim, false);
  if (spec.rounded) spec.indexed ? round_indexed(y, spec.head_dim) : round_bf16(y, spec.head_dim);
}

}  // namespace stet
