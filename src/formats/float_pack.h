// The packing of float formats: [k][16 rows], elements as stored.
#pragma once

#include <cstring>

#include "formats/pack_code.h"

namespace stet {

template <typename Element, float (*kDecode)(Element)>
struct FloatPack {
  static uint64_t tile_bytes(uint32_t k) { return (uint64_t{k} * kTileRows * sizeof(Element) + 63) / 64 * 64; }
  static void pack_tile(const void* const rows[kTileRows], uint32_t k, uint8_t* tile) {
    std::memset(tile, 0, tile_bytes(k));
    // Columns in groups, so that what is written stays in the first cache until all rows have been there.
    constexpr uint32_t kGroup = 128;
    for (uint32_t first = 0; first < k; first += kGroup) {
      const uint32_t end = first + kGroup < k ? first + kGroup : k;
      for (uint32_t r = 0; r < kTileRows; ++r) {
        if (rows[r] == nullptr) continue;
        const uint8_t* source = static_cast<const uint8_t*>(rows[r]);
        for (uint32_t c = first; c < end; ++c)
          std::memcpy(tile + (uint64_t{c} * kTileRows + r) * sizeof(Element), source + c * sizeof(Element),
                      sizeof(Element));
      }
    }
  }
  static float element(const uint8_t* tile, uint32_t, uint32_t row, uint32_t column) {
    Element x;
    std::memcpy(&x, tile + (uint64_t{column} * kTileRows + row) * sizeof(Element), sizeof(Element));
    return kDecode(x);
  }
  static PackTraits traits(Format format) { return {format, false, tile_bytes, pack_tile, element, nullptr}; }
};

}  // namespace stet
