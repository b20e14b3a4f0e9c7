// GGUF's numbers: the types of metadata values and of tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stet {

// Types of metadata values, as the file numbers them.
enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// What is known of a tensor type, whether stet runs it or not (formats/formats.def says which it runs).
struct GgmlType {
  uint32_t number;
  std::string_view name;
  uint32_t block_elements;
  uint32_t block_bytes;
};

// Nothing for a number that no published GGUF and no format of stet uses.
std::optional<GgmlType> find_ggml_type(uint32_t number);

// "Q4_K", or "type 77" for an unknown number.
std::string ggml_type_name(uint32_t number);

// "F32, F16, ...": the formats that stet runs, for messages.
std::string supported_formats();

}  // namespace stet
