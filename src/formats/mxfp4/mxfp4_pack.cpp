// Packed MXFP4: 256 bytes of codes a block (pack_nibbles), then [16 rows] E8M0.
#include <cstring>

#include "formats/mxfp4/mxfp4.h"
#include "formats/pack_code.h"

namespace stet {
namespace {

using Tile = IntegerTile<256, 16>;

void pack_tile(const void* const rows[kTileRows], uint32_t k, uint8_t* tile) {
  std::memset(tile, 0, Tile::bytes(k));
  for (uint32_t b = 0; b < k / kBlock; ++b)
    for (uint32_t r = 0; r < kTileRows; ++r) {
      if (rows[r] == nullptr) continue;
      const BlockMxfp4& source = static_cast<const BlockMxfp4*>(rows[r])[b];
      pack_nibbles(tile + Tile::codes(b), r, source.qs);
      tile[Tile::scales(k, b) + r] = source.scale;
    }
}

float scale(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t block) {
  return e8m0_to_f32(tile[Tile::scales(k, block) + row]);
}

BlockTerm block_term(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t block, const int8_t* x) {
  BlockTerm term = {scale(tile, k, row, block) * 0.5f, 0.0f, 0};
  for (uint32_t i = 0; i < kBlock; ++i) term.isum += integer_e2m1(nibble(tile + Tile::codes(block), row, i)) * x[i];
  return term;
}

PlaneTerm plane_term(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t block, const int32_t* x) {
  int32_t high = 0, low = 0;
  for (uint32_t i = 0; i < kBlock; ++i) {
    const int32_t w = integer_e2m1(nibble(tile + Tile::codes(block), row, i));
    high += w * plane_high(x[i]);
    low += w * plane_low(x[i]);
  }
  // Exact as floats: below 32 * 12 * 512 in size.
  return {scale(tile, k, row, block) * 0x1p-10f, fma32(512.0f, static_cast<float>(high), static_cast<float>(low))};
}

float element(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t column) {
  const uint32_t b = column / kBlock;
  return e2m1_to_f32(nibble(tile + Tile::codes(b), row, column % kBlock)) * scale(tile, k, row, b);
}

}  // namespace

PackTraits pack_traits_mxfp4() {
  return {Format::mxfp4, false, Tile::bytes, pack_tile, element, block_term, plane_term};
}

}  // namespace stet
