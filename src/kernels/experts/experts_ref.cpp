#include <algorithm>

#include "base/error.h"
#include "kernels/common/math_ref.h"
#include "kernels/experts/experts.h"
#include "kernels/rounding/rounding.h"

namespace stet {
namespace {

// Whatever a row that is not finite has for an id, the matrix is one of the layer's.
const PackedMatrix& expert_of(const std::vector<PackedMatrix>& experts, float id) {
  const float last = static_cast<float>(experts.size() - 1);
  return experts[static_cast<size_t>(id > 0.0f ? std::min(id, last) : 0.0f)];
}

}  // namespace

void swiglu_limit_ref(const float* gate, const float* up, float limit, uint32_t n, float* y) {
  for (uint32_t i = 0; i < n; ++i) {
    const float g = gate[i] > limit ? limit : gate[i];
    const float u = up[i] > limit ? limit : up[i] < -limit ? -limit : up[i];
    y[i] = silu_ref(g) * u;
  }
}

void matvec_row_tile(MatvecFn matvec, const PackedMatrix& matrix, uint32_t tile, const float* x, float* out) {
  STET_CHECK(!traits(matrix.format).integer_block);
  // One row of f32 activations is the row itself.
  const Activations row{ActKind::f32, 1, matrix.cols, const_cast<float*>(x)};
  matvec(matrix, tile, row, out);
}

void expert_gate_tile(MatvecFn matvec, const ExpertsSpec& spec, const float* x, const float* route, uint32_t slot,
                      uint32_t tile, float* a) {
  float gate[kTileRows], up[kTileRows];
  const PackedMatrix& w1 = expert_of(spec.gate, route[slot]);
  matvec_row_tile(matvec, w1, tile, x, gate);
  matvec_row_tile(matvec, expert_of(spec.up, route[slot]), tile, x, up);
  const uint32_t n = std::min(kTileRows, w1.rows - tile * kTileRows);
  const float weight = route[spec.chosen + slot];
  if (spec.rounded) {
    round_bf16(gate, n);
    round_bf16(up, n);
  }
  swiglu_limit_ref(gate, up, spec.limit, n, gate);
  for (uint32_t i = 0; i < n; ++i) a[tile * kTileRows + i] = gate[i] * weight;
  if (spec.rounded) round_bf16(a + tile * kTileRows, n);
}

void expert_down_tile(MatvecFn matvec, const ExpertsSpec& spec, const float* a, const float* route, const float* shared,
                      uint32_t tile, float* y) {
  float sum[kTileRows] = {}, term[kTileRows];
  const uint32_t inner = spec.down[0].cols, n = std::min(kTileRows, spec.down[0].rows - tile * kTileRows);
  for (uint32_t slot = 0; slot < spec.chosen; ++slot) {
    matvec_row_tile(matvec, expert_of(spec.down, route[slot]), tile, a + size_t{slot} * inner, slot == 0 ? sum : term);
    if (spec.rounded) round_bf16(slot == 0 ? sum : term, n);
    for (uint32_t i = 0; slot != 0 && i < n; ++i) sum[i] = sum[i] + term[i];
  }
  for (uint32_t i = 0; i < n; ++i) y[tile * kTileRows + i] = sum[i] + shared[tile * kTileRows + i];
}

}  // namespace stet
