// Packed Q8_0: 512 bytes of codes a block, [group g = 0..7][row 0..15][elements 4g .. 4g + 3], each code XOR 0x80 (so that it is
// an unsigned byte, 128 above its value); then [16 rows] f16 d.
#include <cstring>

#include "formats/pack_code.h"
#include "formats/q8_0/q8_0.h"

namespace stet {
namespace {

using Tile = IntegerTile<512, 32>;

uint32_t code_offset(uint32_t row, uint32_t element) { return element / 4 * 64 + row * 4 + element % 4; }

void pack_tile(const void* const rows[kTileRows], uint32_t k, uint8_t* tile) {
  std::memset(tile, 0, Tile::bytes(k));
  for (uint32_t b = 0; b < k / kBlock; ++b) {
    uint8_t* codes = tile + Tile::codes(b);
    uint8_t* scales = tile + Tile::scales(k, b);
    std::memset(codes, 0x80, 512);  // of rows that are missing
    for (uint32_t r = 0; r < kTileRows; ++r) {
      if (rows[r] == nullptr) continue;
      const BlockQ8_0& source = static_cast<const BlockQ8_0*>(rows[r])[b];
      for (uint32_t i = 0; i < kBlock; i += 4) {
        uint32_t word;
        std::memcpy(&word, source.q + i, 4);
        word ^= 0x80808080u;
        std::memcpy(codes + code_offset(r, i), &word, 4);
      }
      put16(scales + 2 * r, source.d);
    }
  }
}

int value(const uint8_t* codes, uint32_t row, uint32_t element) { return codes[code_offset(row, element)] - 128; }

BlockTerm block_term(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t block, const int8_t* x) {
  BlockTerm term = {f16_to_f32(get16(tile + Tile::scales(k, block) + 2 * row)), 0.0f, 0};
  for (uint32_t i = 0; i < kBlock; ++i) term.isum += value(tile + Tile::codes(block), row, i) * x[i];
  return term;
}

float element(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t column) {
  const uint32_t b = column / kBlock;
  return static_cast<float>(value(tile + Tile::codes(b), row, column % kBlock)) *
         f16_to_f32(get16(tile + Tile::scales(k, b) + 2 * row));
}

}  // namespace

PackTraits pack_traits_q8_0() { return {Format::q8_0, false, Tile::bytes, pack_tile, element, block_term}; }

}  // namespace stet
