#include "base/error.h"
#include "base/fp.h"
#include "kernels/common/segments.h"
#include "kernels/matvec/matvec.h"

namespace stet {
namespace {

float tree_sum(const float* x, uint32_t n) {
  return n == 1 ? x[0] : tree_sum(x, n / 2) + tree_sum(x + n / 2, n / 2);
}

float integer_segment(const PackedMatrix& w, uint32_t tile, uint32_t r, const Activations& x, uint32_t m, uint32_t begin,
                      uint32_t end) {
  const PackTraits& format = pack_traits(w.format);
  float acc = 0.0f;
  for (uint32_t b = begin; b < end; ++b) {
    const ActRecord record = act_record(x, m, b);
    const float dx = record.d()[m % kGroup];
    const int8_t* q = record.q(m % kGroup);
    const BlockTerm term = format.block_term(w.tile(tile), w.cols, r, b, q);
    acc = fma32(term.scale * dx, static_cast<float>(term.isum), acc);
    if (!format.has_minimum) continue;
    int32_t sum = 0;
    for (uint32_t i = 0; i < kBlock; ++i) sum += q[i];
    acc = fma32(term.minimum, dx * static_cast<float>(sum), acc);
  }
  return acc;
}

float plane_segment(const PackedMatrix& w, uint32_t tile, uint32_t r, const Activations& x, uint32_t m, uint32_t begin,
                    uint32_t end) {
  float acc = 0.0f;
  for (uint32_t b = begin; b < end; ++b) {
    const PlaneRecord record = plane_record(x, m, b);
    int32_t v[kBlock];
    for (uint32_t i = 0; i < kBlock; ++i) {
      const uint32_t at = PlaneRecord::place(i);
      v[i] = 512 * record.high(m % kGroup)[at] + record.low(m % kGroup)[at];
    }
    const PlaneTerm term = pack_traits(w.format).plane_term(w.tile(tile), w.cols, r, b, v);
    acc = fma32(term.scale * record.d()[m % kGroup], term.sum, acc);
  }
  return acc;
}

float float_segment(const PackedMatrix& w, uint32_t tile, uint32_t r, const Activations& x, uint32_t m, uint32_t begin,
                    uint32_t end) {
  const float* group = reinterpret_cast<const float*>(x.group(m / kGroup));
  const uint32_t cols = x.group_cols(m / kGroup);
  float acc = 0.0f;
  for (uint32_t k = begin; k < end; ++k)
    acc = fma32(pack_traits(w.format).element(w.tile(tile), w.cols, r, k), group[size_t{k} * cols + m % kGroup], acc);
  return acc;
}

}  // namespace

void matvec_ref(const PackedMatrix& w, uint32_t tile, const Activations& x, float* out) {
  STET_CHECK(x.k == w.cols && x.kind == w.input && takes_input(w.format, x.kind));
  const auto segment = x.kind == ActKind::f32 ? float_segment : x.kind == ActKind::i8 ? integer_segment : plane_segment;
  const bool integer = x.kind != ActKind::f32;
  const uint32_t segments = segment_count(w.cols, integer), chunks = chunk_count(w.cols);
  const uint32_t unit = integer ? kChunkBlocks : kChunk, limit = integer ? w.cols / kBlock : w.cols;
  for (uint32_t m = 0; m < x.rows; ++m)
    for (uint32_t r = 0; r < kTileRows; ++r) {
      float partial[kMaxSegments];
      for (uint32_t s = 0; s < segments; ++s) {
        const uint32_t begin = segment_begin(s, segments, chunks) * unit;
        const uint32_t end = std::min(segment_begin(s + 1, segments, chunks) * unit, limit);
        partial[s] = begin >= end ? 0.0f : segment(w, tile, r, x, m, begin, end);
      }
      out[m * kTileRows + r] = tree_sum(partial, segments);
    }
}

}  // namespace stet
