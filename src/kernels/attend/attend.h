// attend: rotate, store and attend.
//
// rope (docs/numerics.md 6.1): pairs (2i, 2i + 1) of the first rope_dim elements: y0 = x0 * cos - x1 * sin, y1 = x0 * sin + x1 * cos,
//   each operation rounded; the rest passes through.
// store: keys (rotated) and values at their absolute position, in the cache's format. q8: as quantize, per 32 of head_dim.
// attend (6.2): for one query row and head, over the keys of positions 0 .. position, in chunks of 128 positions:
//   s_j = dot(q, k_j) * scale. f32, f16: 8 partials (d mod 8), fma in d order, tree ((0+1)+(2+3))+((4+5)+(6+7)).
//         q8: q quantized like the keys; acc = fma(dq * dk, float(isum), acc) over the blocks of 32 in order.
//   m = max_j s_j, p_j = exp(s_j - m), l = sum of p_j in 16 lanes (j mod 16), lanes added in halves,
//   o_d = fma(p_j, v_jd, o_d) in j order (q8: v_jd = float(code) * scale).
//   Two neighbouring results join into one: m = max(ma, mb), l = la * exp(ma - m) + lb * exp(mb - m), o likewise, each operation
//   rounded. Chunks join in a binary tree over the chunk index: aligned runs of 2^i chunks first, then the runs that are left from
//   the last to the first. The output is o_d / l.
// A slot beyond the position is skipped, whatever it holds. Guarantee: exact.
// Limits: head_dim <= kMaxHeadDim; q8: head_dim % 32 == 0; heads % kv_heads == 0.
#pragma once

#include <cstdint>

#include "base/contract.h"
#include "kernels/attend/kv_layout.h"

namespace stet {

constexpr uint32_t kMaxHeadDim = 256;
constexpr uint32_t kMaxRunLevels = 26;  // subtrees of a run of up to 2^24 chunks: 2^31 positions

struct RopeRow {
  const float* cos;  // [rope_dim]: the cosine of pair i at 2i and 2i + 1
  const float* sin;  // [rope_dim]: minus the sine at 2i, the sine at 2i + 1
};

// Cosines and signed sines of one rotation, a row a position.
struct RopeRows {
  const float* first = nullptr;  // [position][2][dim]
  uint32_t dim = 0;

  STET_BOTH RopeRow at(uint32_t position) const {
    const float* row = first + size_t{position} * 2 * dim;
    return {row, row + dim};
  }
};

// y[0 .. head_dim) of one head. y may not be x.
using RopeFn = void (*)(const float* x, RopeRow row, uint32_t rope_dim, uint32_t head_dim, float* y);

// Stores one head of one position: key and value of head_dim floats.
using StoreKvFn = void (*)(const KvLayout& layout, uint8_t* layer, uint32_t head, uint32_t position, const float* key,
                           const float* value);

// A run of chunks, attended: one row and query head.
struct AttendPart {
  float m, l;
  float o[kMaxHeadDim];
};

struct AttendRun {
  KvLayout layout;
  uint8_t* layer = nullptr;
  uint32_t kv_head = 0;
  uint32_t queries = 0;        // query heads that share kv_head
  uint32_t position = 0;       // of the row; keys 0 .. position are seen
  uint32_t first_chunk = 0;    // of the run: a multiple of run_chunks
  uint32_t run_chunks = 1;     // a power of two
  float scale = 1.0f;
  const float* q = nullptr;    // [queries][head_dim], rotated
};

// parts[i] for query head i; the run has at least one key that the row sees.
using AttendFn = void (*)(const AttendRun& run, AttendPart* parts);

// Joins `count` parts of consecutive runs (all of run_chunks chunks but the last) and divides: y[0 .. head_dim).
using JoinFn = void (*)(const AttendPart* parts, uint32_t count, uint32_t head_dim, float* y);

void rope_ref(const float* x, RopeRow row, uint32_t rope_dim, uint32_t head_dim, float* y);
void store_kv_ref(const KvLayout& layout, uint8_t* layer, uint32_t head, uint32_t position, const float* key,
                  const float* value);
void attend_ref(const AttendRun& run, AttendPart* parts);
void join_ref(const AttendPart* parts, uint32_t count, uint32_t head_dim, float* y);

// A binary counter of subtrees: chunks (or runs) pushed in order join as the contract says.
template <typename Part, void (*kJoin)(const Part&, const Part&, uint32_t, Part&)>
class JoinTree {
 public:
  explicit JoinTree(uint32_t head_dim) : head_dim_(head_dim) {}
  // Where the next part is to be written before push().
  Part& next() { return level_[depth_]; }
  void push() {
    ++depth_;
    for (uint32_t bits = count_++; bits & 1u; bits >>= 1) join_top();
  }
  const Part& finish() {
    while (depth_ > 1) join_top();
    return level_[0];
  }

 private:
  void join_top() {
    kJoin(level_[depth_ - 2], level_[depth_ - 1], head_dim_, level_[depth_ - 2]);
    --depth_;
  }
  uint32_t head_dim_, count_ = 0, depth_ = 0;
  Part level_[kMaxRunLevels];
};

}  // namespace stet
