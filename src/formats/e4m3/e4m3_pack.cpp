// Packed F8_E4M3: 512 bytes of codes a block of 32, [group g = 0..7][row 0..15][elements 4g .. 4g + 3]; then [16 rows]
// E8M0, the scale of the 128 elements that the block is a quarter of.
//
// A code that is NaN makes every product of its row NaN, and kernels multiply integers: such a row of a block gets the
// scale NaN. So all 32 elements of it read as NaN from a pack; nothing else of it reaches an output.
#include <cstring>

#include "formats/e4m3/e4m3.h"
#include "formats/pack_code.h"

namespace stet {
namespace {

using Tile = IntegerTile<512, 16>;

uint32_t code_offset(uint32_t row, uint32_t element) { return element / 4 * 64 + row * 4 + element % 4; }

void pack_tile(const void* const rows[kTileRows], uint32_t k, uint8_t* tile) {
  std::memset(tile, 0, Tile::bytes(k));
  for (uint32_t b = 0; b < k / kBlock; ++b)
    for (uint32_t r = 0; r < kTileRows; ++r) {
      if (rows[r] == nullptr) continue;
      const BlockE4M3& source = static_cast<const BlockE4M3*>(rows[r])[b / 4];
      const uint8_t* from = source.codes + b % 4 * kBlock;
      uint8_t& scale = tile[Tile::scales(k, b) + r];
      scale = source.scale;
      for (uint32_t i = 0; i < kBlock; ++i)
        if (is_nan_e4m3(from[i])) scale = 255;
      for (uint32_t i = 0; i < kBlock; i += 4) std::memcpy(tile + Tile::codes(b) + code_offset(r, i), from + i, 4);
    }
}

uint8_t code(const uint8_t* tile, uint32_t row, uint32_t block, uint32_t element) {
  return tile[Tile::codes(block) + code_offset(row, element)];
}
float scale(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t block) {
  return e8m0_to_f32(tile[Tile::scales(k, block) + row]);
}

BlockTerm block_term(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t block, const int8_t* x) {
  BlockTerm term = {scale(tile, k, row, block) * 0x1p-9f, 0.0f, 0};
  // |sum| <= 32 * 245760 * 127 < 2^30, the codes of NaN included.
  for (uint32_t i = 0; i < kBlock; ++i) term.isum += integer_e4m3(code(tile, row, block, i)) * x[i];
  return term;
}

PlaneTerm plane_term(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t block, const int32_t* x) {
  int32_t high = 0, middle = 0, low = 0;
  for (uint32_t i = 0; i < kBlock; ++i) {
    const int32_t w = integer_e4m3(code(tile, row, block, i));
    high += plane_high(w) * plane_high(x[i]);
    middle += plane_high(w) * plane_low(x[i]) + plane_low(w) * plane_high(x[i]);
    low += plane_low(w) * plane_low(x[i]);
  }
  // Exact as floats, all three: |high| <= 32 * 448 * 448, |middle| <= 32 * 2 * 448 * 511, |low| <= 32 * 511 * 511 <
  // 2^24.
  const float upper = fma32(512.0f, static_cast<float>(high), static_cast<float>(middle));
  return {scale(tile, k, row, block) * 0x1p-18f, fma32(512.0f, upper, static_cast<float>(low))};
}

float element(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t column) {
  const uint32_t b = column / kBlock;
  return e4m3_to_f32(code(tile, row, b, column % kBlock)) * scale(tile, k, row, b);
}

}  // namespace

PackTraits pack_traits_e4m3() { return {Format::e4m3, false, Tile::bytes, pack_tile, element, block_term, plane_term}; }

}  // namespace stet
