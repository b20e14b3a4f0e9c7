// Weight formats as data. A format is one folder (its block, its scalar decode, its quantiser, its packing) and one
// line in formats.def; everything else finds it through this table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace stet {

enum class Format : uint8_t {
#define FORMAT(id, name, ggml) id,
#include "formats/formats.def"
#undef FORMAT
};

// From this number on formats are not GGUF's: they come from other files.
constexpr uint32_t kNotInGguf = 0x80000000u;

struct FormatTraits {
  Format format;
  std::string_view name;    // GGUF's, e.g. "Q4_1"
  uint32_t ggml_type;       // GGUF's number, or one of ours from kNotInGguf on
  uint32_t block_elements;  // elements along K in one block
  uint32_t block_bytes;
  bool integer_block;  // dot products inside a block of 32 are exact integers (docs/numerics.md 3)
  // Decodes n elements (a multiple of block_elements) to f32, each one rounded as the format's formula says.
  void (*dequantize)(const void* blocks, float* out, size_t n);
  // Encodes n finite f32 elements with the published reference quantiser (synthetic models, tests).
  void (*quantize)(const float* x, void* blocks, size_t n);
};

const FormatTraits& traits(Format format);
std::span<const FormatTraits> all_formats();
std::optional<Format> format_from_ggml(uint32_t ggml_type);     // never a format that is not GGUF's
std::optional<Format> format_from_number(uint32_t ggml_type);   // any: what packs store
std::optional<Format> format_from_name(std::string_view name);  // "q4_0", "Q4_0" alike

}  // namespace stet
