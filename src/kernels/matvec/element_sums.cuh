// Products with weights that are read as floats, of any packed format: a thread has a row of a tile and a segment (docs/numerics.md 3.2).
#pragma once

#include "formats/element_cuda.cuh"
#include "kernels/matvec/matvec_shape.cuh"

namespace stet::cuda {

// Threads of a block: kTileRows * segments; row threadIdx.x % kTileRows.
template <Format kFormat>
__device__ __forceinline__ float element_sum(const uint8_t* tile, uint32_t k, uint32_t segments, const float* x) {
  const uint32_t row = threadIdx.x % kTileRows, segment = threadIdx.x / kTileRows, chunks = (k + kChunk - 1) / kChunk;
  const uint32_t end = min(segment_start(segment + 1, segments, chunks) * kChunk, k);
  float sum = 0.0f;
#pragma unroll 4
  for (uint32_t i = segment_start(segment, segments, chunks) * kChunk; i < end; ++i)
    sum = __fmaf_rn(element<kFormat>(tile, k, row, i), x[i], sum);
  return sum;
}

// The tree over the segments, of every row: partial[segment][row of the tile].
__device__ __forceinline__ float element_tree(const float* partial, uint32_t segments) {
  return tree_of_segments(partial + threadIdx.x % kTileRows, segments, kTileRows);
}

}  // namespace stet::cuda
