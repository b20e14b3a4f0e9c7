// Packed weights: the layout that every CPU kernel reads. A matrix of N rows and K columns becomes ceil(N/16) tiles of 16 rows, each
// contiguous and 64-byte aligned; inside a tile the rows are interleaved, so that a vector lane is a row. K is never padded; rows
// missing from the last tile are zero and never stored to an output. docs/numerics.md section 3 says in which order they are read.
//
// Integer formats: a tile is a run of chunks of 4 blocks (128 columns; the last may be shorter). A chunk is all codes of its
// blocks, then all scales of its blocks (each format's *_pack.cpp draws its own). Float formats: [k][16 rows].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/format.h"

namespace stet {

constexpr uint32_t kTileRows = 16;
constexpr uint32_t kBlock = 32;         // columns of an integer block: one activation scale
constexpr uint32_t kChunkBlocks = 4;    // blocks of a chunk
constexpr uint32_t kChunk = 128;        // columns of a chunk: the unit that segments are made of
constexpr uint32_t kPackLayout = 1;     // changes when any tile layout changes; part of a pack's key

// One block of 32 of one row against the same block of an activation vector.
struct BlockTerm {
  float scale;     // dw
  float minimum;   // m; 0 where the format has none
  int32_t isum;    // exact dot product of the integer weights and the int8 activations
};

// The same against 32 activations of kind e4m3: adds scale * dx * sum.
struct PlaneTerm {
  float scale;  // dw, with the powers of two that make integers of weights and activations
  float sum;    // docs/numerics.md 3.3
};

// The forms in which a product reads its input (kernels/common/activations.h).
enum class ActKind : uint8_t { f32, i8, e4m3 };
constexpr uint32_t kActKinds = 3;

struct PackTraits {
  Format format;
  bool has_minimum;
  // Bytes of one tile of K columns, a multiple of 64. REQUIRES: K a multiple of the format's block.
  uint64_t (*tile_bytes)(uint32_t k);
  // Packs 16 rows of encoded blocks; a null row is packed as zeros. `tile` has tile_bytes(k) bytes.
  void (*pack_tile)(const void* const rows[kTileRows], uint32_t k, uint8_t* tile);
  // Element (row, column) as f32, rounded as dequantize rounds it.
  float (*element)(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t column);
  // Integer formats only: the reference for every kernel.
  BlockTerm (*block_term)(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t block, const int8_t* x);
  // Integer formats that e4m3 activations multiply: likewise. x: 512 times the values, integers below 2^18 in size.
  PlaneTerm (*plane_term)(const uint8_t* tile, uint32_t k, uint32_t row, uint32_t block, const int32_t* x) = nullptr;
};

const PackTraits& pack_traits(Format format);

std::string_view act_name(ActKind kind);  // "f32", "i8", "e4m3"
bool takes_input(Format format, ActKind kind);
// f32 for float formats, i8 for integer ones.
ActKind default_input(Format format);

// A packed matrix in memory. Not owned.
struct PackedMatrix {
  Format format = Format::f32;
  uint32_t rows = 0;  // N
  uint32_t cols = 0;  // K
  const uint8_t* data = nullptr;
  ActKind input = default_input(format);  // what products with it read; one that the format takes

  uint32_t tiles() const { return (rows + kTileRows - 1) / kTileRows; }
  uint64_t tile_bytes() const { return pack_traits(format).tile_bytes(cols); }
  uint64_t bytes() const { return tile_bytes() * tiles(); }
  const uint8_t* tile(uint32_t t) const { return data + t * tile_bytes(); }
};

// Packs a whole matrix of encoded rows held in memory: tests and small tools. (The loader streams tile by tile.)
std::vector<uint8_t> pack_matrix(Format format, const void* blocks, uint32_t rows, uint32_t cols);

}  // namespace stet
