// The header of one safetensors file, checked before anything of it is used.
//
//   file := header_bytes:u64 json{header_bytes} data
//   json := {"__metadata__": {text: text, ...}, NAME: {"dtype": TEXT, "shape": [n, ...], "data_offsets": [begin, end]},
//   ...}
//
// Little-endian; offsets are relative to the data; the tensors cover the data without holes or overlap.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weights/byte_input.h"

namespace stet {

struct SafetensorsTensor {
  std::string name;
  std::string dtype;            // as the file says: "BF16", "F8_E4M3", ...
  std::vector<uint64_t> shape;  // as the file says: the slowest dimension first; none for a single number
  uint64_t offset = 0;          // from the start of the file
  uint64_t bytes = 0;
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<SafetensorsTensor> tensors;  // by offset
};

// Throws Error(kInput), beginning with the file's name, for a damaged file, and Error(kUnsupported) for a dtype that
// the format does not have today.
SafetensorsHeader parse_safetensors(const ByteInput& input);

}  // namespace stet
