// matvec for one instruction set: included once by each file of src/kernels/isa, after the vector vocabulary.
#pragma once

#include "kernels/common/segments.h"
#include "kernels/matvec/cpu_weights.h"
#include "kernels/matvec/matvec.h"

#include "formats/each_cpu.h"  // generated: <id>/<id>_cpu.h of every format

namespace stet::STET_ISA {

// The processor's own prefetcher does not keep up, least of all where several rows of x keep the core busy between two loads: 8 rows
// of Q8_0 took 110 ms without asking ahead and 63 with (docs/performance.md).
constexpr uint32_t kAheadOfRows = 8192, kAheadOfFloats = 8192;

// Balanced pairwise tree over partials that arrive in order: a binary counter of subtrees.
template <int kWidth>
struct SegmentTree {
  F level[7][kWidth];  // up to 64 segments
  uint32_t count = 0;

  void push(F* x) {
    int l = 0;
    for (uint32_t bits = count++; bits & 1u; bits >>= 1, ++l)
      STET_UNROLL
      for (int i = 0; i < kWidth; ++i) x[i] = add(level[l][i], x[i]);
    STET_UNROLL
    for (int i = 0; i < kWidth; ++i) level[l][i] = x[i];
  }
  // REQUIRES: a power of two of pushes.
  const F* root() const { return level[__builtin_ctz(count)]; }
};

constexpr int kHalves = static_cast<int>(kTileRows) / kLanes;  // vectors that make the 16 rows of a tile

// Asks for the bytes that are read kAhead later.
template <uint32_t kAhead>
inline void prefetch_span(const uint8_t* p, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; i += 64) _mm_prefetch(reinterpret_cast<const char*>(p) + kAhead + i, _MM_HINT_T0);
}

template <typename Weights, ActKind kInput, int C, bool kPrefetch>
void integer_tile(const uint8_t* tile, uint32_t k, const uint8_t* x, F* out) {
  const uint32_t blocks = k / kBlock, chunks = chunk_count(k), segments = segment_count(k, true);
  SegmentTree<C * kHalves> tree;
  constexpr uint32_t kBytes = Weights::kCodes + Weights::kScales;  // of a block
  constexpr uint32_t kRecord = kInput == ActKind::i8 ? kActRecord : kPlaneRecord;
  uint32_t chunk = 0;
  for (uint32_t s = 0; s < segments; ++s) {
    F acc[C * kHalves];
    STET_UNROLL
    for (F& a : acc) a = zero();
    for (const uint32_t end = segment_begin(s + 1, segments, chunks); chunk < end; ++chunk) {
      const uint32_t first = chunk * kChunkBlocks;
      const uint32_t n = blocks - first < kChunkBlocks ? blocks - first : kChunkBlocks;
      const uint8_t* scales = tile + n * Weights::kCodes;
      for (uint32_t b = 0; b < n; ++b, x += C * kRecord) {
        if constexpr (kPrefetch) prefetch_span<C == 1 ? Weights::kAhead : kAheadOfRows>(tile + b * kBytes, kBytes);
        const uint8_t *block = tile + b * Weights::kCodes, *of = scales + b * Weights::kScales;
        if constexpr (kInput == ActKind::i8) {
          Weights::template accumulate<C>(block, of, x, acc);
        } else {
          Weights::template accumulate_planes<C>(block, of, x, acc);
        }
      }
      tile += n * kBytes;
    }
    tree.push(acc);
  }
  STET_UNROLL
  for (int i = 0; i < C * kHalves; ++i) out[i] = tree.root()[i];
}

template <typename Weights, int C, bool kPrefetch>
void float_tile(const uint8_t* tile, uint32_t k, const uint8_t* x_bytes, F* out) {
  const uint32_t chunks = chunk_count(k), segments = segment_count(k, false);
  const float* x = reinterpret_cast<const float*>(x_bytes);
  SegmentTree<C * kHalves> tree;
  uint32_t i = 0;
  for (uint32_t s = 0; s < segments; ++s) {
    F acc[C * kHalves];
    STET_UNROLL
    for (F& a : acc) a = zero();
    const uint32_t limit = segment_begin(s + 1, segments, chunks) * kChunk;
    for (const uint32_t end = limit < k ? limit : k; i < end; ++i, x += C) {
      if constexpr (kPrefetch) prefetch_span<kAheadOfFloats>(tile, kTileRows * Weights::kBytes);
      STET_UNROLL
      for (int h = 0; h < kHalves; ++h) {
        const F w = Weights::decode(tile + h * kLanes * Weights::kBytes);
        STET_UNROLL
        for (int c = 0; c < C; ++c) acc[c * kHalves + h] = fma(w, set1(x[c]), acc[c * kHalves + h]);
      }
      tile += kTileRows * Weights::kBytes;
    }
    tree.push(acc);
  }
  STET_UNROLL
  for (int j = 0; j < C * kHalves; ++j) out[j] = tree.root()[j];
}

template <typename Weights, ActKind kInput, int C, bool kPrefetch>
void tile_group(const uint8_t* tile, uint32_t k, const uint8_t* x, float* out) {
  F sums[C * kHalves];
  if constexpr (kInput != ActKind::f32) {
    integer_tile<Weights, kInput, C, kPrefetch>(tile, k, x, sums);
  } else {
    float_tile<Weights, C, kPrefetch>(tile, k, x, sums);
  }
  STET_UNROLL
  for (int c = 0; c < C; ++c)
    STET_UNROLL
    for (int h = 0; h < kHalves; ++h) store(out + c * static_cast<int>(kTileRows) + h * kLanes, sums[c * kHalves + h]);
}

template <typename Weights, ActKind kInput, bool kPrefetch>
void tile_cols(uint32_t cols, const uint8_t* tile, uint32_t k, const uint8_t* x, float* out) {
  switch (cols) {
    case 1:
      return tile_group<Weights, kInput, 1, kPrefetch>(tile, k, x, out);
    case 2:
      return tile_group<Weights, kInput, 2, kPrefetch>(tile, k, x, out);
    case 3:
      return tile_group<Weights, kInput, 3, kPrefetch>(tile, k, x, out);
    case 4:
      return tile_group<Weights, kInput, 4, kPrefetch>(tile, k, x, out);
    case 5:
      return tile_group<Weights, kInput, 5, kPrefetch>(tile, k, x, out);
    case 6:
      return tile_group<Weights, kInput, 6, kPrefetch>(tile, k, x, out);
    case 7:
      return tile_group<Weights, kInput, 7, kPrefetch>(tile, k, x, out);
    default:
      return tile_group<Weights, kInput, 8, kPrefetch>(tile, k, x, out);
  }
}

template <typename Weights, ActKind kInput>
void matvec_input(const uint8_t* tile, const Activations& x, float* out) {
  for (uint32_t g = 0; g < x.groups(); ++g, out += kGroup * kTileRows) {
    // The first group brings the tile into the cache; the others find it there.
    if (g == 0) {
      tile_cols<Weights, kInput, true>(x.group_cols(g), tile, x.k, x.group(g), out);
    } else {
      tile_cols<Weights, kInput, false>(x.group_cols(g), tile, x.k, x.group(g), out);
    }
  }
}

template <typename Weights>
void matvec_format(const uint8_t* tile, const Activations& x, float* out) {
  if constexpr (requires { Weights::kBytes; }) {
    matvec_input<Weights, ActKind::f32>(tile, x, out);
  } else if constexpr (requires { Weights::kPlanes; }) {
    if (x.kind == ActKind::e4m3) return matvec_input<Weights, ActKind::e4m3>(tile, x, out);
    matvec_input<Weights, ActKind::i8>(tile, x, out);
  } else {
    matvec_input<Weights, ActKind::i8>(tile, x, out);
  }
}

inline void matvec(const PackedMatrix& w, uint32_t tile, const Activations& x, float* out) {
  // Weights in 8 bits or fewer times f32: of the tile as F32.
  if (x.kind == ActKind::f32 && default_input(w.format) != ActKind::f32)
    return matvec_input<CpuWeights<Format::f32>, ActKind::f32>(reinterpret_cast<const uint8_t*>(decoded_tile(w, tile)), x, out);
  const uint8_t* data = w.data + tile * pack_traits(w.format).tile_bytes(w.cols);
  switch (w.format) {
#define FORMAT(id, name, ggml) \
  case Format::id: return matvec_format<CpuWeights<Format::id>>(data, x, out);
#include "formats/formats.def"
#undef FORMAT
  }
}

}  // namespace stet::STET_ISA
