#include "weights/hf/scaled_matrix.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/visible_text.h"

namespace stet {
namespace {

constexpr std::string_view kCodesSuffix = ".weight", kScalesSuffix = ".scale";
constexpr uint64_t kRowsOfScale = 128;                 // FP8: of a block
constexpr uint64_t kPieceBytes = uint64_t{256} << 10;  // rows that are put together at once
constexpr std::byte kNotANumber{0xff};

using Shape = std::vector<uint64_t>;

// One row: blocks of a scale and 128 codes.
void put_fp8_row(const std::byte* codes, const std::byte* scales, uint64_t blocks, std::byte* out) {
  constexpr uint64_t kCodes = 128;
  for (uint64_t b = 0; b < blocks; ++b, codes += kCodes, out += 1 + kCodes) {
    out[0] = scales[b];
    std::memcpy(out + 1, codes, kCodes);
  }
}

// One row: blocks of a scale and 16 bytes, which hold element j below element j + 16.
void put_fp4_row(const std::byte* codes, const std::byte* scales, uint64_t blocks, std::byte* out) {
  constexpr uint64_t kCodes = 16;
  constexpr std::byte kLow{0x0f}, kHigh{0xf0};
  for (uint64_t b = 0; b < blocks; ++b, codes += kCodes, out += 1 + kCodes) {
    out[0] = scales[b];
    for (uint64_t i = 0; i < kCodes / 2; ++i) {
      const std::byte first = codes[i], second = codes[i + kCodes / 2];  // elements 2i, 2i + 1 of either half
      out[1 + 2 * i] = (first & kLow) | second << 4;
      out[2 + 2 * i] = first >> 4 | (second & kHigh);
    }
  }
}

}  // namespace

struct ScaledMatrix::Scratch {
  std::vector<std::byte> codes, scales, rows;
};

std::optional<Format> hf_codes_format(std::string_view dtype) {
  if (dtype == kHfFp8) return Format::e4m3;
  if (dtype == kHfFp4) return Format::mxfp4;
  return std::nullopt;
}

std::string hf_name_of_codes(std::string_view scales) {
  if (!scales.ends_with(kScalesSuffix)) return "";
  return std::string(scales.substr(0, scales.size() - kScalesSuffix.size())) + std::string(kCodesSuffix);
}

std::string hf_name_of_scales(std::string_view codes) {
  if (codes.ends_with(kCodesSuffix)) codes.remove_suffix(kCodesSuffix.size());
  return std::string(codes) + std::string(kScalesSuffix);
}

ScaledMatrix::ScaledMatrix(HfPart codes, HfPart scales)
    : codes_(std::move(codes)), scales_(std::move(scales)), format_(hf_codes_format(codes_.tensor.dtype).value()) {
  const SafetensorsTensor& t = codes_.tensor;
  if (t.shape.size() != 2 || t.shape[0] == 0 || t.shape[1] == 0)
    fail(Code::kInput, "{}: tensor '{}' is {} of shape [{}], which is no matrix", codes_.input.name, shown_name(t.name),
         t.dtype, fmt::join(t.shape, ", "));
  rows_ = t.shape[0];
  cols_ = format_ == Format::mxfp4 ? 2 * t.shape[1] : t.shape[1];
  const FormatTraits& blocks = traits(format_);
  if (cols_ % blocks.block_elements != 0)
    fail(Code::kUnsupported, "{}: tensor '{}' has {} columns; of {} stet reads a multiple of {}", codes_.input.name,
         shown_name(t.name), cols_, format_ == Format::mxfp4 ? "packed FP4" : "FP8", blocks.block_elements);
  check_scales();
}

void ScaledMatrix::check_scales() const {
  const SafetensorsTensor& t = scales_.tensor;
  if (t.dtype != kHfScales)
    fail(Code::kUnsupported, "{}: tensor '{}' is {}; stet reads scales of {}", scales_.input.name, shown_name(t.name),
         t.dtype, kHfScales);
  const Shape needed = {format_ == Format::mxfp4 ? rows_ : (rows_ + kRowsOfScale - 1) / kRowsOfScale, blocks()};
  if (t.shape != needed)
    fail(Code::kInput, "{}: tensor '{}' has shape [{}]; '{}', of shape [{}], needs [{}]", scales_.input.name,
         shown_name(t.name), fmt::join(t.shape, ", "), shown_name(codes_.tensor.name),
         fmt::join(codes_.tensor.shape, ", "), fmt::join(needed, ", "));
}

void ScaledMatrix::read_rows(uint64_t first, uint64_t count, std::byte* out, Scratch& scratch) const {
  const bool fp4 = format_ == Format::mxfp4;
  const uint64_t code_bytes = codes_.tensor.shape[1], rows_of_scale = fp4 ? 1 : kRowsOfScale;
  const uint64_t first_scale = first / rows_of_scale,
                 scale_rows = (first + count - 1) / rows_of_scale - first_scale + 1;
  scratch.codes.resize(count * code_bytes);
  scratch.scales.resize(scale_rows * blocks());
  codes_.input.read(codes_.tensor.offset + first * code_bytes, scratch.codes);
  scales_.input.read(scales_.tensor.offset + first_scale * blocks(), scratch.scales);
  if (std::ranges::find(scratch.scales, kNotANumber) != scratch.scales.end())
    fail(Code::kInput, "{}: damaged: tensor '{}' holds a scale that is no number; get the file again",
         scales_.input.name, shown_name(scales_.tensor.name));
  for (uint64_t r = 0; r < count; ++r) {
    const std::byte* codes = scratch.codes.data() + r * code_bytes;
    const std::byte* scales = scratch.scales.data() + ((first + r) / rows_of_scale - first_scale) * blocks();
    (fp4 ? put_fp4_row : put_fp8_row)(codes, scales, blocks(), out + r * row_bytes());
  }
}

void ScaledMatrix::read(uint64_t offset, std::span<std::byte> out) const {
  const uint64_t most = std::max<uint64_t>(1, kPieceBytes / row_bytes());
  Scratch scratch;
  while (!out.empty()) {
    const uint64_t row = offset / row_bytes(), within = offset % row_bytes();
    const uint64_t whole = within == 0 ? std::min(most, out.size() / row_bytes()) : 0;
    uint64_t n = whole * row_bytes();
    if (whole != 0) {
      read_rows(row, whole, out.data(), scratch);
    } else {
      scratch.rows.resize(row_bytes());
      read_rows(row, 1, scratch.rows.data(), scratch);
      n = std::min<uint64_t>(out.size(), row_bytes() - within);
      std::memcpy(out.data(), scratch.rows.data() + within, n);
    }
    out = out.subspan(n);
    offset += n;
  }
}

}  // namespace stet
