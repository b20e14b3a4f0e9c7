#include "formats/format.h"

#include <algorithm>
#include <array>

#include "formats/format_code.h"

namespace stet {
namespace {

FormatTraits make_traits(Format format, std::string_view name, uint32_t ggml_type, const FormatCode& code) {
  return {format,          name,         ggml_type, code.block_elements, code.block_bytes, code.integer_block,
          code.dequantize, code.quantize};
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

std::span<const FormatTraits> all_formats() {
  static const std::array table = {
#define FORMAT(id, name, ggml) make_traits(Format::id, name, ggml, format_code_##id()),
#include "formats/formats.def"
#undef FORMAT
  };
  return table;
}

const FormatTraits& traits(Format format) {
  const auto table = all_formats();
  STET_CHECK(static_cast<size_t>(format) < table.size());
  return table[static_cast<size_t>(format)];
}

std::optional<Format> format_from_ggml(uint32_t ggml_type) {
  return ggml_type < kNotInGguf ? format_from_number(ggml_type) : std::nullopt;
}

std::optional<Format> format_from_number(uint32_t ggml_type) {
  for (const FormatTraits& t : all_formats())
    if (t.ggml_type == ggml_type) return t.format;
  return std::nullopt;
}

std::optional<Format> format_from_name(std::string_view name) {
  for (const FormatTraits& t : all_formats())
    if (same_name(t.name, name)) return t.format;
  return std::nullopt;
}

}  // namespace stet
