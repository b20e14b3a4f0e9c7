// Runs of columns of a tile of integer weights, as the units of row_unit.cuh and few_unit.cuh take them.
#pragma once

#include "base/cuda/device.cuh"
#include "formats/each_cuda.cuh"
#include "formats/pack.h"

namespace stet::cuda {

// Unit::add_block(codes, scales, x, block, sums) does one block.
template <Format kFormat, typename Unit>
struct IntegerRuns {
  using W = CudaWeights<kFormat>;
  static constexpr bool kInteger = true;
  static constexpr uint32_t kSegments = 1;
  static constexpr uint32_t kBlockBytes = W::kCodes + W::kScales, kChunkBytes = kChunkBlocks * kBlockBytes;
  static constexpr uint32_t kChunks = kChunkBytes <= 1280 ? 2 : 1, kColumns = kChunks * kChunk,
                            kBytes = kChunks * kChunkBytes;
  __device__ static uint32_t bytes(uint32_t columns) { return columns / kBlock * kBlockBytes; }
  __device__ static size_t offset(uint32_t column) { return size_t{column / kBlock} * kBlockBytes; }

  template <typename Input, typename Sums>
  __device__ static void add(const uint8_t* unit, uint32_t columns, const Input& x, uint32_t column, Sums& sums) {
    uint32_t first = column / kBlock, blocks = columns / kBlock;
    for (; blocks >= kChunkBlocks; blocks -= kChunkBlocks, first += kChunkBlocks, unit += kChunkBytes) {
#pragma unroll
      for (uint32_t b = 0; b < kChunkBlocks; ++b)
        Unit::add_block(unit + b * W::kCodes, unit + kChunkBlocks * W::kCodes + b * W::kScales, x, first + b, sums);
    }
#pragma unroll 1
    for (uint32_t b = 0; b < blocks; ++b)
      Unit::add_block(unit + b * W::kCodes, unit + blocks * W::kCodes + b * W::kScales, x, first + b, sums);
  }
  // A chunk of `blocks` blocks, the first of which is block `first` of x.
  template <typename Input, typename Sums>
  __device__ static void add_chunk(const uint8_t* chunk, uint32_t blocks, const Input& x, uint32_t first, Sums& sums) {
    if (blocks == kChunkBlocks) {
#pragma unroll
      for (uint32_t b = 0; b < kChunkBlocks; ++b)
        Unit::add_block(chunk + b * W::kCodes, chunk + kChunkBlocks * W::kCodes + b * W::kScales, x, first + b, sums);
    } else {
#pragma unroll 1
      for (uint32_t b = 0; b < blocks; ++b)
        Unit::add_block(chunk + b * W::kCodes, chunk + blocks * W::kCodes + b * W::kScales, x, first + b, sums);
    }
  }
};

}  // namespace stet::cuda
