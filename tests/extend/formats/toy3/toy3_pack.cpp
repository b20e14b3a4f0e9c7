// Packed TOY3: 512 bytes of codes a block, [group g = 0..7][row 0..15][elements 4g .. 4g + 3], each byte 128 above its value; then
// [16 rows] f16 d.
#include <cstring>

#include "formats/pack_code.h"
#include "formats/toy3/toy3.h"

namespace stet {
namespace {

using Tile = IntegerTile<512, 32>;

uint32_t code_offset(uint32_t row, uint32_t element) { return element / 4 * 64 + row * 4 + element % 4; }

void pack_tile(const void* const rows[kTileRows], uint32_t k, uint8_t* tile) {
  std::memset(tile, 0, Tile::bytes(k));
  for (uint32_t b = 0; b < k / kBlock; ++b) {
    uint8_t* codes = tile + Tile::codes(b);
    std::memset(codes, 0x80, 512);  // of rows that are missing
    for (uint32_t r = 0; r < kTileRows; ++r) {
      if (rows[r] == nullptr) continue;
      const BlockToy3& source = static_cast<const BlockToy3*>(rows[r])[b];
      for (uint32_t i = 0; i < kBlock; ++i) codes[code_offset(r, i)] = static_cast<uint8_t>(128 + source.value(i));
      put16(tile + Tile::scales(k, b) + 2 * r, source.d);
    }
  }
}

int value(const uint8_t* tile, uint32_t row, uint32_t column) {
  return tile[Tile::codes(column / kBlock) + code_offset(row, column % kBlock)] - 128;
}

float scale(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t block) {
  return f16_to_f32(get16(tile + Tile::scales(k, block) + 2 * row));
}

BlockTerm block_term(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t block, const int8_t* x) {
  BlockTerm term = {scale(tile, k, row, block), 0.0f, 0};
  for (uint32_t i = 0; i < kBlock; ++i) term.isum += value(tile, row, block * kBlock + i) * x[i];
  return term;
}

float element(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t column) {
  return static_cast<float>(value(tile, row, column)) * scale(tile, k, row, column / kBlock);
}

}  // namespace

PackTraits pack_traits_toy3() { return {Format::toy3, false, Tile::bytes, pack_tile, element, block_term}; }

}  // namespace stet
