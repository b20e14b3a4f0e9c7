#include "weights/hf/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/strict_json.h"
#include "base/visible_text.h"

namespace stet {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr size_t kMaxDimensions = 8;

struct Dtype {
  std::string_view name;
  uint32_t bits;
};
constexpr Dtype kDtypes[] = {
    {"BOOL", 8}, {"U8", 8},   {"I8", 8},    {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"I16", 16},
    {"U16", 16}, {"F16", 16}, {"BF16", 16}, {"I32", 32},    {"U32", 32},    {"F32", 32},    {"I64", 64},
    {"U64", 64}, {"F64", 64}, {"C64", 64},  {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},
};

uint32_t bits_of(const std::string& dtype, const std::string& where) {
  const auto found = std::ranges::find(kDtypes, dtype, &Dtype::name);
  if (found == std::end(kDtypes)) fail(Code::kUnsupported, "{}: dtype '{}' is not known", where, shown_name(dtype));
  return found->bits;
}

// An integer that is not negative, of an array.
uint64_t count_of(const LargeJson& value, const std::string& where, std::string_view what) {
  if (!value.is_number_unsigned()) fail(Code::kInput, "{}: damaged: {} is not a count", where, what);
  return value.get<uint64_t>();
}

std::string read_header(const ByteInput& input) {
  uint64_t bytes = 0;
  if (input.size < sizeof bytes)
    fail(Code::kInput, "{}: {} bytes are no safetensors file; get it again", input.name, input.size);
  input.read(0, std::as_writable_bytes(std::span(&bytes, 1)));
  if (bytes > kMaxHeaderBytes)
    fail(Code::kInput, "{}: no safetensors file, or damaged: a header of {} bytes; at most {} are sound", input.name,
         bytes, kMaxHeaderBytes);
  if (bytes > input.size - sizeof bytes)
    fail(Code::kInput, "{}: truncated: the header has {} bytes and {} are there; get it again", input.name, bytes,
         input.size - sizeof bytes);
  std::string text(bytes, '\0');
  input.read(sizeof bytes, std::as_writable_bytes(std::span(text)));
  return text;
}

std::vector<uint64_t> shape_of(const LargeJson& value, const std::string& where) {
  if (!value.is_array() || value.size() > kMaxDimensions)
    fail(Code::kInput, "{}: damaged: the shape is no list of up to {} sizes", where, kMaxDimensions);
  std::vector<uint64_t> shape;
  for (const auto& size : value) shape.push_back(count_of(size, where, "a size of the shape"));
  return shape;
}

// Throws when elements * bits is no number of whole bytes, or overflows.
uint64_t bytes_of(const std::vector<uint64_t>& shape, uint32_t bits, const std::string& where) {
  uint64_t n = bits;
  for (const uint64_t size : shape)
    if (__builtin_mul_overflow(n, size, &n)) fail(Code::kInput, "{}: damaged: its size overflows", where);
  if (n % 8 != 0) fail(Code::kInput, "{}: damaged: its size is no number of whole bytes", where);
  return n / 8;
}

SafetensorsTensor read_tensor(const std::string& name, const LargeJson& value, uint64_t data_start, uint64_t data_bytes,
                              const std::string& file) {
  const std::string where = fmt::format("{}: tensor '{}'", file, shown_name(name));
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets") || !value["dtype"].is_string())
    fail(Code::kInput, "{}: damaged: not dtype, shape and data_offsets", where);
  const auto& offsets = value["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2) fail(Code::kInput, "{}: damaged: data_offsets are not two", where);
  const uint64_t begin = count_of(offsets[0], where, "data_offsets"), end = count_of(offsets[1], where, "data_offsets");
  SafetensorsTensor t{name, value["dtype"].get<std::string>(), shape_of(value["shape"], where), data_start + begin,
                      end - begin};
  const uint64_t bytes = bytes_of(t.shape, bits_of(t.dtype, where), where);
  if (begin > end || end - begin != bytes)
    fail(Code::kInput, "{}: damaged: its shape takes {} bytes and data_offsets are {} to {}", where, bytes, begin, end);
  if (end > data_bytes)
    fail(Code::kInput, "{}: truncated: it ends at byte {} of the data, which has {}; get the file again", where, end,
         data_bytes);
  return t;
}

void read_metadata(const LargeJson& value, const std::string& file, SafetensorsHeader& header) {
  if (!value.is_object()) fail(Code::kInput, "{}: damaged: __metadata__ is no object", file);
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) fail(Code::kInput, "{}: damaged: __metadata__ holds something that is no text", file);
    header.metadata[key] = text.get<std::string>();
  }
}

void check_cover(const std::vector<SafetensorsTensor>& tensors, uint64_t data_start, const ByteInput& input) {
  uint64_t at = data_start;
  for (const SafetensorsTensor& t : tensors) {
    if (t.offset != at)
      fail(Code::kInput, "{}: damaged: tensor '{}' begins at byte {} and the one before it ends at {}", input.name,
           shown_name(t.name), t.offset, at);
    at += t.bytes;
  }
  if (at != input.size)
    fail(Code::kInput, "{}: damaged: {} bytes behind the last tensor; get it again", input.name, input.size - at);
}

}  // namespace

SafetensorsHeader parse_safetensors(const ByteInput& input) {
  const std::string text = read_header(input);
  const LargeJson json = parse_large_json(text, input.name + ": damaged: its header");
  if (!json.is_object()) fail(Code::kInput, "{}: damaged: its header is no JSON object", input.name);
  const uint64_t data_start = sizeof(uint64_t) + text.size();
  SafetensorsHeader header;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      read_metadata(value, input.name, header);
    } else {
      header.tensors.push_back(read_tensor(name, value, data_start, input.size - data_start, input.name));
    }
  }
  // Tensors without elements stand before the one that begins where they do.
  std::ranges::sort(header.tensors, {}, [](const SafetensorsTensor& t) { return std::pair(t.offset, t.bytes); });
  check_cover(header.tensors, data_start, input);
  return header;
}

}  // namespace stet
