#include <algorithm>

#include "kernels/common/state_row_values.h"
#include "kernels/heads/heads.h"
#include "kernels/rounding/rounding.h"
#include "replay/row_ops.h"

namespace stet {

void row_pool_entry(const Kernels& kernels, const Command& c, const StepParams& params, uint32_t row, uint32_t) {
  const EntrySpec& spec = std::get<EntrySpec>(c.spec);
  const uint32_t t = params.position + row, size = spec.pool.size(), ratio = spec.pool.ratio();
  float* y = c.out->row(row);
  std::fill_n(y, size, 0.0f);
  if ((t + 1) % ratio != 0) return;
  const uint32_t entry = t / ratio;
  pool_entry_ref(spec.pool, entry, y);
  if (spec.rounded) round_bf16(y, size);
  kernels.rmsnorm(y, spec.norm, spec.eps, size, y);
  if (spec.rounded) round_bf16(y, size);
  rotate_tail_ref(y, size, spec.rope.at(entry * ratio), spec.rope.dim, false);
  if (spec.rounded) spec.indexed ? round_indexed(y, size) : round_cached(y, size, spec.rope.dim);
  store_row(spec.pool.entries, entry, y);
}

}  // namespace stet
