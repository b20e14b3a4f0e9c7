// Products of the experts that a row has chosen, and SwiGLU with clamped inputs (DeepSeek V4).
//
// swiglu_limit: g = min(gate, limit), u = min(max(up, -limit), limit), y = silu(g) * u as swiglu has it. A NaN stays
// one. gate: for slot s of a row, a = swiglu_limit(W1 x, W3 x) * weight_s, the matrices being those of the slot's
// expert. down: y = W2_0 a_0, then y + W2_s a_s in slot order, then y + the shared expert's result; each addition
// rounded. In the mode of a checkpoint W1 x, W3 x, a and each W2 a are rounded to bf16 besides. Products are matvec's,
// with their inputs quantised as w.input says. Guarantee: exact.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/contract.h"
#include "kernels/matvec/matvec.h"
#include "kernels/quantize/quantize.h"

namespace stet {

struct ExpertsSpec {
  std::vector<PackedMatrix> gate, up, down;  // one an expert; a command has the first two or the last
  uint32_t chosen = 0;
  float limit = 0.0f;
  bool rounded = false;  // as a checkpoint has it
};

// What a product of one row is made with.
struct RowKernels {
  MatvecFn matvec;
  QuantizeFn quantize;
};

// The expert that an id of a route means. Whatever a row that is not finite has for an id, it is one of the layer's.
STET_BOTH static inline uint32_t expert_index(float id, uint32_t experts) {
  const float last = static_cast<float>(experts - 1);
  return static_cast<uint32_t>(id > 0.0f ? (last < id ? last : id) : 0.0f);
}

void swiglu_limit_ref(const float* gate, const float* up, float limit, uint32_t n, float* y);

// Tiles that are computed together: the input is quantised once for all of them.
constexpr uint32_t kTilesOfPart = 8;
struct TileRun {
  uint32_t first, end;  // at most kTilesOfPart
};
// A matrix of so many tiles in parts, and the tiles of one.
inline uint32_t parts_of(uint32_t tiles) { return (tiles + kTilesOfPart - 1) / kTilesOfPart; }
inline TileRun tiles_of_part(uint32_t part, uint32_t tiles) {
  return {part * kTilesOfPart, std::min(tiles, (part + 1) * kTilesOfPart)};
}

// route [2 * chosen]: ids, then weights. Tiles of slot `slot`, written to a [inner width] of that slot.
void expert_gate_tiles(const RowKernels& kernels, const ExpertsSpec& spec, const float* x, const float* route,
                       uint32_t slot, TileRun tiles, float* a);
// a [chosen][inner width]; shared [hidden]. Tiles of y [hidden].
void expert_down_tiles(const RowKernels& kernels, const ExpertsSpec& spec, const float* a, const float* route,
                       const float* shared, TileRun tiles, float* y);
// One tile of a matrix times one row of floats: out [16].
void matvec_row_tile(const RowKernels& kernels, const PackedMatrix& matrix, uint32_t tile, const float* x, float* out);

}  // namespace stet
