#include "base/error.h"
#include "replay/row_ops.h"

namespace stet {

void row_route(const Kernels&, const Command& c, const StepParams& params, uint32_t row, uint32_t) {
  const RouteSpec& spec = std::get<RouteSpec>(c.spec);
  if (spec.bias != nullptr) return route_ref(spec, c.in->row(row), nullptr, c.out->row(row));
  const uint32_t token = static_cast<uint32_t>(params.tokens[row]);
  STET_CHECK(token < c.matrix.rows);
  const auto element = pack_traits(c.matrix.format).element;
  float ids[kMaxChosen];
  for (uint32_t i = 0; i < spec.chosen; ++i)
    ids[i] = element(c.matrix.tile(token / kTileRows), c.matrix.cols, token % kTileRows, i);
  route_ref(spec, c.in->row(row), ids, c.out->row(row));
}

}  // namespace stet
