#include <algorithm>

#include "kernels/common/math_ref.h"
#include "kernels/experts/experts.h"
#include "kernels/rounding/rounding.h"

namespace stet {
namespace {

const PackedMatrix& expert_of(const std::vector<PackedMatrix>& experts, float id) {
  return experts[expert_index(id, static_cast<uint32_t>(experts.size()))];
}

// One row of floats as activations: of kind f32 the row itself, else quantised into memory that a thread keeps.
class RowInput {
 public:
  RowInput(const RowKernels& kernels, const PackedMatrix& matrix, const float* x)
      : row_{matrix.input, 1, matrix.cols, const_cast<float*>(x)} {
    if (row_.kind == ActKind::f32) return;
    static thread_local std::vector<Line> memory;
    const size_t lines = (activation_bytes(row_.kind, 1, row_.k) + sizeof(Line) - 1) / sizeof(Line);
    if (memory.size() < lines) memory.resize(lines);
    row_.data = memory.data();
    kernels.quantize(x, 0, row_);
  }
  // Good until this thread makes another.
  const Activations& row() const { return row_; }

 private:
  struct alignas(64) Line {
    uint8_t bytes[64];
  };
  Activations row_;
};

// out [tiles][16]
void row_tiles(const RowKernels& kernels, const PackedMatrix& matrix, const float* x, TileRun tiles, float* out) {
  const RowInput input(kernels, matrix, x);
  for (uint32_t t = tiles.first; t < tiles.end; ++t, out += kTileRows) kernels.matvec(matrix, t, input.row(), out);
}

}  // namespace

void swiglu_limit_ref(const float* gate, const float* up, float limit, uint32_t n, float* y) {
  for (uint32_t i = 0; i < n; ++i) {
    const float g = gate[i] > limit ? limit : gate[i];
    const float u = up[i] > limit ? limit : up[i] < -limit ? -limit : up[i];
    y[i] = silu_ref(g) * u;
  }
}

void matvec_row_tile(const RowKernels& kernels, const PackedMatrix& matrix, uint32_t tile, const float* x, float* out) {
  row_tiles(kernels, matrix, x, {tile, tile + 1}, out);
}

void expert_gate_tiles(const RowKernels& kernels, const ExpertsSpec& spec, const float* x, const float* route,
                       uint32_t slot, TileRun tiles, float* a) {
  const PackedMatrix &w1 = expert_of(spec.gate, route[slot]), &w3 = expert_of(spec.up, route[slot]);
  const float weight = route[spec.chosen + slot];
  float gate[kTilesOfPart * kTileRows], up[kTilesOfPart * kTileRows];
  row_tiles(kernels, w1, x, tiles, gate);
  row_tiles(kernels, w3, x, tiles, up);
  const uint32_t first = tiles.first * kTileRows, n = std::min(tiles.end * kTileRows, w1.rows) - first;
  if (spec.rounded) {
    round_bf16(gate, n);
    round_bf16(up, n);
  }
  swiglu_limit_ref(gate, up, spec.limit, n, gate);
  for (uint32_t i = 0; i < n; ++i) a[first + i] = gate[i] * weight;
  if (spec.rounded) round_bf16(a + first, n);
}

void expert_down_tiles(const RowKernels& kernels, const ExpertsSpec& spec, const float* a, const float* route,
                       const float* shared, TileRun tiles, float* y) {
  const uint32_t inner = spec.down[0].cols, first = tiles.first * kTileRows;
  const uint32_t n = std::min(tiles.end * kTileRows, spec.down[0].rows) - first;
  float sum[kTilesOfPart * kTileRows], term[kTilesOfPart * kTileRows];
  for (uint32_t slot = 0; slot < spec.chosen; ++slot) {
    float* to = slot == 0 ? sum : term;
    row_tiles(kernels, expert_of(spec.down, route[slot]), a + size_t{slot} * inner, tiles, to);
    if (spec.rounded) round_bf16(to, n);
    for (uint32_t i = 0; slot != 0 && i < n; ++i) sum[i] = sum[i] + term[i];
  }
  for (uint32_t i = 0; i < n; ++i) y[first + i] = sum[i] + shared[first + i];
}

}  // namespace stet
