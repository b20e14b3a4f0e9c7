#include "formats/pack.h"

#include <array>

#include "base/error.h"
#include "formats/pack_code.h"

namespace stet {

const PackTraits& pack_traits(Format format) {
  static const std::array table = {
#define FORMAT(id, name, ggml) pack_traits_##id(),
#include "formats/formats.def"
#undef FORMAT
  };
  STET_CHECK(static_cast<size_t>(format) < table.size());
  return table[static_cast<size_t>(format)];
}

std::string_view act_name(ActKind kind) {
  constexpr std::array<std::string_view, kActKinds> kNames = {"f32", "i8", "e4m3"};
  return kNames[static_cast<size_t>(kind)];
}

bool takes_input(Format format, ActKind kind) {
  const PackTraits& t = pack_traits(format);
  switch (kind) {
    case ActKind::f32:
      return t.block_term == nullptr || t.plane_term != nullptr;
    case ActKind::i8:
      return t.block_term != nullptr;
    case ActKind::e4m3:
      return t.plane_term != nullptr;
  }
  return false;
}

ActKind default_input(Format format) { return traits(format).integer_block ? ActKind::i8 : ActKind::f32; }

std::vector<uint8_t> pack_matrix(Format format, const void* blocks, uint32_t rows, uint32_t cols) {
  const FormatTraits& t = traits(format);
  STET_CHECK(cols % t.block_elements == 0);
  const uint64_t row_bytes = uint64_t{cols / t.block_elements} * t.block_bytes;
  const uint64_t tile_bytes = pack_traits(format).tile_bytes(cols);
  const uint32_t tiles = (rows + kTileRows - 1) / kTileRows;
  std::vector<uint8_t> out(tile_bytes * tiles);
  for (uint32_t tile = 0; tile < tiles; ++tile) {
    const void* source[kTileRows] = {};
    for (uint32_t r = 0; r < kTileRows && tile * kTileRows + r < rows; ++r)
      source[r] = static_cast<const uint8_t*>(blocks) + (uint64_t{tile} * kTileRows + r) * row_bytes;
    pack_traits(format).pack_tile(source, cols, out.data() + tile * tile_bytes);
  }
  return out;
}

}  // namespace stet
