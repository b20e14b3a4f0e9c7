// matvec: y[m][n] = sum over k of W[n][k] * x[m][k].
//
// Integer formats (a8 activations, docs/numerics.md 3.1), per output and segment, blocks of 32 in order:
//     acc = fma(mul(dw, dx), float(isum), acc)            isum: exact integer dot product of the block
//     acc = fma(m, mul(dx, float(sum of qx)), acc)        formats with a minimum only; the product is made once a row
//     of x
// F8_E4M3 and MXFP4 with e4m3 activations (3.3): acc = fma(mul(dw, dx), b, acc), b: the block's product, exact but for
// its end. Float formats (f32 activations, 3.2), per output and segment: acc = fma(w, x, acc) in k order. Segments are
// combined by a balanced pairwise tree; an empty segment is +0. Which of them is w.input, and x is of that kind.
// Guarantee: exact. Limits: K a multiple of the format's block; integer formats: K % 32 == 0.
#pragma once

#include "formats/pack.h"
#include "kernels/common/activations.h"

namespace stet {

// One tile of 16 rows of W times every row of x: out[m * 16 + r], m < x.rows. Rows of the tile beyond W.rows give zeros.
using MatvecFn = void (*)(const PackedMatrix& w, uint32_t tile, const Activations& x, float* out);

// The tile as a tile of F32, in memory of the calling thread until its next call.
const float* decoded_tile(const PackedMatrix& w, uint32_t tile);

void matvec_ref(const PackedMatrix& w, uint32_t tile, const Activations& x, float* out);

}  // namespace stet
