// One weight of a packed tile on a device, as PackTraits::element has it.
#pragma once

#include "formats/e4m3/e4m3.h"
#include "formats/each_cuda.cuh"
#include "formats/mxfp4/mxfp4.h"
#include "formats/pack.h"

namespace stet::cuda {

// Where the block of an integer tile that holds a column has its codes and scales.
struct ElementPlace {
  const uint8_t *codes, *scales;
  uint32_t i;  // of the column in the block
};
template <uint32_t kCodes, uint32_t kScales>
__device__ __forceinline__ ElementPlace element_place(const uint8_t* tile, uint32_t k, uint32_t column) {
  const uint32_t block = column / kBlock, first = block / kChunkBlocks * kChunkBlocks, of = min(kChunkBlocks, k / kBlock - first);
  const uint8_t* chunk = tile + size_t{first} * (kCodes + kScales);
  return {chunk + (block - first) * kCodes, chunk + of * kCodes + (block - first) * kScales, column % kBlock};
}

template <Format kFormat>
inline constexpr bool kHasElements =
    kIntegerWeights<kFormat> || kFloatWeights<kFormat> || kFormat == Format::e4m3 || kFormat == Format::mxfp4;

template <Format kFormat>
__device__ __forceinline__ float packed_element(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t column) {
  using W = CudaWeights<kFormat>;
  if constexpr (kFormat == Format::e4m3) {
    const ElementPlace at = element_place<512, 16>(tile, k, column);
    return __fmul_rn(e4m3_to_f32(at.codes[at.i / 4 * 64 + row * 4 + at.i % 4]), e8m0_to_f32(at.scales[row]));
  } else if constexpr (kFormat == Format::mxfp4) {
    const ElementPlace at = element_place<256, 16>(tile, k, column);
    return __fmul_rn(e2m1_to_f32(nibble_code(at.codes, row, at.i)), e8m0_to_f32(at.scales[row]));
  } else if constexpr (kIntegerWeights<kFormat>) {
    const ElementPlace at = element_place<W::kCodes, W::kScales>(tile, k, column);
    return W::element(at.codes, at.scales, row, at.i);
  } else {
    return W::value(reinterpret_cast<const typename W::Element*>(tile)[size_t{column} * kTileRows + row]);
  }
}

}  // namespace stet::cuda
