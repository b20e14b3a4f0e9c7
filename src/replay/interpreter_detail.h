// What the CPU interpreter computes about a step: how attention is cut into runs, how much scratch a list needs, claim sizes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "device/memory.h"
#include "kernels/rounding/rounding.h"
#include "replay/command.h"

namespace stet::detail {

constexpr uint32_t kMaxRuns = 8;  // runs that the attention of a narrow pass is cut into

inline size_t round64(size_t bytes) { return (bytes + 63) / 64 * 64; }

// The cut of a narrow pass: aligned runs of a power of two chunks, at most kMaxRuns of them. Any cut gives the same bits.
struct Runs {
  uint32_t chunks;         // of a run
  uint32_t last_position;  // of the pass
  uint32_t count(uint32_t position) const { return position / kSlots / chunks + 1; }
  uint32_t total() const { return count(last_position); }
};

inline Runs runs_of(const StepParams& params) {
  const uint32_t last = params.position + params.rows - 1;
  const uint32_t all = last / kSlots + 1;
  return {std::bit_ceil((all + kMaxRuns - 1) / kMaxRuns), last};
}

inline AttendPart* row_parts(const AlignedBuffer& parts, size_t row, uint32_t heads) {
  return parts.as<AttendPart>().data() + row * heads;
}

inline void copy_part(const AttendPart& from, uint32_t head_dim, AttendPart& to) {
  to.m = from.m;
  to.l = from.l;
  std::memcpy(to.o, from.o, head_dim * sizeof(float));
}

// A product's results. `rounded`: each is rounded to bf16, and what they are added to as well.
inline void emit(const float* x, uint32_t n, const Command& c, float* out) {
  if (c.accumulate) {
    for (uint32_t i = 0; i < n; ++i) out[i] = out[i] + (rounded_if(c.rounded, x[i]));
  } else {
    std::memcpy(out, x, n * sizeof(float));
  }
  if (c.rounded) round_bf16(out, n);
}

// Tiles claimed at a time: about 16 KiB of weights, but at least eight claims a worker.
inline uint32_t grain(uint32_t tiles, uint64_t tile_bytes, unsigned workers) {
  const uint32_t by_bytes = static_cast<uint32_t>(16384 / tile_bytes) + 1;
  const uint32_t by_share = tiles / (8 * workers) + 1;
  return std::min(by_bytes, by_share);
}

// Asks for the first weights of a stage before its activations are made: they depend on nothing.
inline void request(const PackedMatrix& matrix, uint32_t tile) {
  const uint8_t* p = matrix.tile(tile);
  for (uint32_t i = 0; i < 8192; i += 64) __builtin_prefetch(p + i);
}

struct Sizes {
  uint32_t width = 0;
  size_t row_bytes = 64, narrow_activations = 64, shared_activations = 64, q_bytes = 64, parts = 64;
};

Sizes scratch_sizes(const std::vector<const CommandList*>& lists, unsigned workers);

}  // namespace stet::detail
