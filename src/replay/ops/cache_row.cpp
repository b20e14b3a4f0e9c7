#include <algorithm>

#include "kernels/common/state_row_values.h"
#include "kernels/heads/heads.h"
#include "kernels/rounding/rounding.h"
#include "replay/row_ops.h"

namespace stet {

void row_cache_row(const Kernels&, const Command& c, const StepParams& params, uint32_t row, uint32_t) {
  const CacheSpec& spec = std::get<CacheSpec>(c.spec);
  const uint32_t t = params.position + row, width = c.out->width;
  float* y = c.out->row(row);
  std::copy_n(c.in->row(row), width, y);
  rotate_tail_ref(y, width, spec.rope.at(t), spec.rope.dim, false);
  if (spec.rounded) round_cached(y, width, spec.rope.dim);
  if (spec.rows.width != 0) store_row(spec.rows, t, y);
}

}  // namespace stet
