// How K is cut for a matrix-vector product (docs/numerics.md section 3): chunks of 128 columns, chunk c in segment
// floor(c * S / chunks), S a function of K alone. Segments are summed by a balanced pairwise tree.
#pragma once

#include <cstdint>

#include "formats/pack.h"

namespace stet {

constexpr uint32_t kMaxSegments = 64;

static constexpr uint32_t segment_count(uint32_t k, bool integer_weights) {
  if (!integer_weights && k >= 8192) return 64;
  return k < 2048 ? 8 : 16;
}

static constexpr uint32_t chunk_count(uint32_t k) { return (k + kChunk - 1) / kChunk; }

// First chunk of segment s; segment s is [segment_begin(s), segment_begin(s + 1)) and may be empty.
static constexpr uint32_t segment_begin(uint32_t s, uint32_t segments, uint32_t chunks) {
  return static_cast<uint32_t>((uint64_t{s} * chunks + segments - 1) / segments);
}

}  // namespace stet
