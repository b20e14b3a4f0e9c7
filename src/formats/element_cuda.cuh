// One weight of a packed tile as f32 on a device, bits as PackTraits::element.
#pragma once

#include "formats/each_cuda.cuh"  // generated: <id>/<id>_cuda.cuh of every format
#include "formats/pack.h"

namespace stet::cuda {

template <Format kFormat>
inline constexpr bool kHasElements = kBlockWeights<kFormat> || kFloatWeights<kFormat>;

// Element (row, column) of a tile of k columns.
template <Format kFormat>
__device__ __forceinline__ float element(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t column) {
  using W = CudaWeights<kFormat>;
  if constexpr (kBlockWeights<kFormat>) {
    const uint32_t block = column / kBlock, first = block / kChunkBlocks * kChunkBlocks, of = min(kChunkBlocks, k / kBlock - first);
    const uint8_t* chunk = tile + size_t{first} * (W::kCodes + W::kScales);
    return W::element(chunk + (block - first) * W::kCodes, chunk + of * W::kCodes + (block - first) * W::kScales, row, column % kBlock);
  } else {
    return W::value(reinterpret_cast<const typename W::Element*>(tile)[size_t{column} * kTileRows + row]);
  }
}

// Calls f.operator()<kFormat>() for the format, if its elements can be read; else throws Error(kUnsupported).
template <typename F>
void with_elements(Format format, const F& f) {
  const auto call = [&]<Format kFormat>() {
    if constexpr (kHasElements<kFormat>) {
      f.template operator()<kFormat>();
    } else {
      fail_cuda_format("CUDA", static_cast<uint32_t>(kFormat));
    }
  };
  switch (format) {
#define FORMAT(id, name, ggml) \
  case Format::id:             \
    return call.template operator()<Format::id>();
#include "formats/formats.def"
#undef FORMAT
  }
}

}  // namespace stet::cuda
