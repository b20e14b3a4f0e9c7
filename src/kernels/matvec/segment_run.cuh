// Neighbouring segments of a tile that a warp sums itself, chunk by chunk through a reader of its own.
#pragma once

#include "formats/pack.h"
#include "kernels/matvec/matvec_shape.cuh"

namespace stet::cuda {

struct SegmentRun {
  uint32_t first, count;              // count: a power of two, at most 16; first: a multiple of it
  uint32_t segments, chunks, blocks;  // of K
  // Chunks of the tile.
  __device__ uint32_t begin() const { return segment_start(first, segments, chunks); }
  __device__ uint32_t end() const { return segment_start(first + count, segments, chunks); }
};

// The subtree over the run. x_block: where block 0 of the tile's columns lies in the input.
template <typename Unit, typename Reader>
__device__ __forceinline__ typename Unit::Sums sum_of_segments(Reader& reader, const SegmentRun& run, const typename Unit::Input& x,
                                                               uint32_t x_block) {
  typename Unit::Sums sums, left[4];
#pragma unroll 1
  for (uint32_t i = 0; i < run.count; ++i) {
    sums = {};
    const uint32_t end = segment_start(run.first + i + 1, run.segments, run.chunks);
#pragma unroll 1
    for (uint32_t c = segment_start(run.first + i, run.segments, run.chunks); c < end; ++c) {
      const uint32_t block = c * kChunkBlocks;
      Unit::add_chunk(reader.next(), min(kChunkBlocks, run.blocks - block), x, x_block + block, sums);
      reader.done();
    }
    bool open = true;
#pragma unroll
    for (uint32_t l = 0; l < 4; ++l) {
      if (!open) continue;
      if ((i >> l & 1u) != 0) {
        sums = Unit::joined(left[l], sums);
      } else {
        left[l] = sums;
        open = false;
      }
    }
  }
  return sums;
}

}  // namespace stet::cuda
