// What the packings share: where a block's codes and scales lie inside a tile.
#pragma once

#include <cstring>

#include "base/fp.h"
#include "formats/pack.h"

namespace stet {

// Each format's folder defines one of these: PackTraits pack_traits_q4_0().
#define FORMAT(id, name, ggml) PackTraits pack_traits_##id();
#include "formats/formats.def"
#undef FORMAT

// The geometry of an integer tile: per block kCodes bytes of codes and kScales bytes of scales.
template <uint32_t kCodes, uint32_t kScales>
struct IntegerTile {
  static uint64_t bytes(uint32_t k) {
    const uint64_t raw = uint64_t{k / kBlock} * (kCodes + kScales);
    return (raw + 63) / 64 * 64;
  }
  static uint64_t chunk_base(uint32_t block) {
    return uint64_t{block / kChunkBlocks} * kChunkBlocks * (kCodes + kScales);
  }
  // Blocks in the chunk that holds `block`.
  static uint32_t chunk_blocks(uint32_t k, uint32_t block) {
    const uint32_t first = block / kChunkBlocks * kChunkBlocks;
    return k / kBlock - first < kChunkBlocks ? k / kBlock - first : kChunkBlocks;
  }
  static uint64_t codes(uint32_t block) { return chunk_base(block) + uint64_t{block % kChunkBlocks} * kCodes; }
  static uint64_t scales(uint32_t k, uint32_t block) {
    return chunk_base(block) + uint64_t{chunk_blocks(k, block)} * kCodes + uint64_t{block % kChunkBlocks} * kScales;
  }
};

// 512 times an e4m3 value, an integer v below 2^18 in size, as 512 * high + low: both have v's sign, and 9 bits.
static inline int32_t plane_high(int32_t v) { return v / 512; }
static inline int32_t plane_low(int32_t v) { return v % 512; }

static inline void put16(uint8_t* p, uint16_t x) { std::memcpy(p, &x, 2); }
static inline uint16_t get16(const uint8_t* p) {
  uint16_t x;
  std::memcpy(&x, p, 2);
  return x;
}

// Nibble codes of a block as GGUF stores them (byte j: elements j and j + 16), four bytes of each of 16 rows at a time:
//   [group g = 0..3][row 0..15][byte 4g .. 4g + 3]
static inline void pack_nibbles(uint8_t* codes, uint32_t row, const uint8_t qs[16]) {
  for (uint32_t g = 0; g < 4; ++g) std::memcpy(codes + g * 64 + row * 4, qs + g * 4, 4);
}
static inline int nibble(const uint8_t* codes, uint32_t row, uint32_t element) {
  const uint32_t j = element % 16;
  return codes[j / 4 * 64 + row * 4 + j % 4] >> (element < 16 ? 0 : 4) & 15;
}

}  // namespace stet
