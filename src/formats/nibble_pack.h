// The packing that Q4_0 and Q4_1 share; only the scales and what a code means differ.
#pragma once

#include <cstring>

#include "formats/pack_code.h"

namespace stet {

// Block has qs[16] and d, and, where kMinimum, m. A code q stands for q - kOffset.
//   codes   256 bytes: pack_nibbles
//   scales  [16 rows] f16 d, then, where kMinimum, [16 rows] f16 m
template <typename Block, bool kMinimum, int kOffset>
struct NibblePack {
  using Tile = IntegerTile<256, kMinimum ? 64 : 32>;

  static void pack_tile(const void* const rows[kTileRows], uint32_t k, uint8_t* tile) {
    std::memset(tile, 0, Tile::bytes(k));
    for (uint32_t b = 0; b < k / kBlock; ++b) {
      uint8_t* codes = tile + Tile::codes(b);
      uint8_t* scales = tile + Tile::scales(k, b);
      for (uint32_t r = 0; r < kTileRows; ++r) {
        if (rows[r] == nullptr) continue;
        const Block& source = static_cast<const Block*>(rows[r])[b];
        pack_nibbles(codes, r, source.qs);
        put16(scales + 2 * r, source.d);
        if constexpr (kMinimum) put16(scales + 32 + 2 * r, source.m);
      }
    }
  }
  static BlockTerm block_term(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t block, const int8_t* x) {
    const uint8_t* scales = tile + Tile::scales(k, block);
    BlockTerm term = {f16_to_f32(get16(scales + 2 * row)), 0.0f, 0};
    if constexpr (kMinimum) term.minimum = f16_to_f32(get16(scales + 32 + 2 * row));
    for (uint32_t i = 0; i < kBlock; ++i) term.isum += (nibble(tile + Tile::codes(block), row, i) - kOffset) * x[i];
    return term;
  }
  static float element(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t column) {
    const uint8_t* scales = tile + Tile::scales(k, column / kBlock);
    const int q = nibble(tile + Tile::codes(column / kBlock), row, column % kBlock) - kOffset;
    float value = static_cast<float>(q) * f16_to_f32(get16(scales + 2 * row));
    if constexpr (kMinimum) value = value + f16_to_f32(get16(scales + 32 + 2 * row));
    return value;
  }
  static PackTraits traits(Format format) {
    return {format, kMinimum, Tile::bytes, pack_tile, element, block_term};
  }
};

}  // namespace stet
