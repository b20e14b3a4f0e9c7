// Packed Q6_K, a block being 32 of the 256 elements of a super-block:
//   codes   256 bytes of low nibbles (pack_nibbles), then 128 bytes of high bits: [half h = 0..1][row 0..15][byte b = 0..3], whose
//           bits 2f and 2f + 1 belong to element 16h + 4f + b
//   scales  [half 0..1][16 rows] i8 sub-scale, then [16 rows] f16 super scale
// The integer of an element is (q - 32) * sub-scale, so that a block's dot product stays one integer below 2^24.
#include <cstring>

#include "formats/pack_code.h"
#include "formats/q6_k/q6_k.h"

namespace stet {
namespace {

using Tile = IntegerTile<384, 64>;

uint32_t get32(const uint8_t* p) {
  uint32_t x;
  std::memcpy(&x, p, 4);
  return x;
}
void put32(uint8_t* p, uint32_t x) { std::memcpy(p, &x, 4); }

// Block 0..7 of a super-block: four elements a word, as q6_k.h says where their bits are.
void pack_block(uint8_t* codes, uint32_t row, const BlockQ6_K& source, uint32_t block) {
  const uint8_t* ql = source.ql + 64 * (block / 4) + 32 * (block % 2);
  const uint8_t* qh = source.qh + 32 * (block / 4);
  const uint32_t low_shift = block % 4 < 2 ? 0 : 4, high_shift = 2 * (block % 4);
  uint32_t low[8], high[2] = {};
  for (uint32_t w = 0; w < 8; ++w) {
    low[w] = get32(ql + 4 * w) >> low_shift & 0x0f0f0f0fu;
    high[w / 4] |= (get32(qh + 4 * w) >> high_shift & 0x03030303u) << (2 * (w % 4));
  }
  for (uint32_t g = 0; g < 4; ++g) put32(codes + g * 64 + row * 4, low[g] | low[g + 4] << 4);
  for (uint32_t h = 0; h < 2; ++h) put32(codes + 256 + h * 64 + row * 4, high[h]);
}

void pack_tile(const void* const rows[kTileRows], uint32_t k, uint8_t* tile) {
  std::memset(tile, 0, Tile::bytes(k));
  for (uint32_t b = 0; b < k / kBlock; ++b) {
    uint8_t* codes = tile + Tile::codes(b);
    uint8_t* scales = tile + Tile::scales(k, b);
    for (uint32_t r = 0; r < kTileRows; ++r) {
      if (rows[r] == nullptr) continue;
      const BlockQ6_K& source = static_cast<const BlockQ6_K*>(rows[r])[b / 8];
      pack_block(codes, r, source, b % 8);
      scales[r] = static_cast<uint8_t>(source.sc[b % 8 * 2]);
      scales[16 + r] = static_cast<uint8_t>(source.sc[b % 8 * 2 + 1]);
      put16(scales + 32 + 2 * r, source.d);
    }
  }
}

int code(const uint8_t* codes, uint32_t row, uint32_t element) {
  const uint8_t high = codes[256 + element / 16 * 64 + row * 4 + element % 4];
  return nibble(codes, row, element) | (high >> (2 * (element % 16 / 4)) & 3) << 4;
}

int sub_scale(const uint8_t* scales, uint32_t row, uint32_t element) {
  return static_cast<int8_t>(scales[element / 16 * 16 + row]);
}

BlockTerm block_term(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t block, const int8_t* x) {
  const uint8_t* scales = tile + Tile::scales(k, block);
  BlockTerm term = {f16_to_f32(get16(scales + 32 + 2 * row)), 0.0f, 0};
  for (uint32_t i = 0; i < kBlock; ++i)
    term.isum += sub_scale(scales, row, i) * (code(tile + Tile::codes(block), row, i) - 32) * x[i];
  return term;
}

float element(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t column) {
  const uint32_t b = column / kBlock, i = column % kBlock;
  const uint8_t* scales = tile + Tile::scales(k, b);
  const float scale = f16_to_f32(get16(scales + 32 + 2 * row)) * static_cast<float>(sub_scale(scales, row, i));
  return scale * static_cast<float>(code(tile + Tile::codes(b), row, i) - 32);
}

}  // namespace

PackTraits pack_traits_q6_k() { return {Format::q6_k, false, Tile::bytes, pack_tile, element, block_term}; }

}  // namespace stet
