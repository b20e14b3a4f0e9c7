// One weight of a packed tile on a device, as PackTraits::element has it.
#pragma once

#include "formats/each_cuda.cuh"
#include "formats/pack.h"

namespace stet::cuda {

template <Format kFormat>
inline constexpr bool kHasElements = kBlockWeights<kFormat> || kFloatWeights<kFormat>;

template <Format kFormat>
__device__ __forceinline__ float packed_element(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t column) {
  using W = CudaWeights<kFormat>;
  if constexpr (kBlockWeights<kFormat>) {
    const uint32_t block = column / kBlock, first = block / kChunkBlocks * kChunkBlocks, of = min(kChunkBlocks, k / kBlock - first);
    const uint8_t* chunk = tile + size_t{first} * (W::kCodes + W::kScales);
    return W::element(chunk + (block - first) * W::kCodes, chunk + of * W::kCodes + (block - first) * W::kScales, row, column % kBlock);
  } else {
    return W::value(reinterpret_cast<const typename W::Element*>(tile)[size_t{column} * kTileRows + row]);
  }
}

}  // namespace stet::cuda
