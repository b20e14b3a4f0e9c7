// The header of one GGUF file, versions 2 and 3, checked before anything of it is used.
//
//   file   := "GGUF" version:u32 tensors:u64 values:u64 value{values} tensor{tensors} padding data
//   value  := key:string type:u32 payload
//   string := bytes:u64 byte{bytes}
//   array  := type:u32 n:u64 payload{n}                         (payload of type 9)
//   tensor := name:string n_dims:u32 dim:u64{n_dims} type:u32 offset:u64
//
// Little-endian, no padding before the data, which starts at the next multiple of general.alignment (32 when absent);
// offsets are relative to that start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weights/byte_input.h"
#include "weights/tensor_source.h"

namespace stet {

// A tensor as the file declares it, of a format that stet runs or not.
struct GgufTensor {
  std::string name;
  std::vector<uint64_t> shape;  // fastest dimension first
  uint32_t ggml_type = 0;
  std::optional<Format> format;  // absent: stet does not run it
  uint64_t offset = 0;           // from the start of its file
  uint64_t bytes = 0;            // 0: the type is unknown, so its size is too
  uint32_t part = 0;             // of a split file
};

struct GgufHeader {
  uint32_t version = 0;
  uint64_t alignment = 32;
  uint64_t data_start = 0;
  Metadata metadata;
  std::vector<GgufTensor> tensors;
};

// Throws Error(kInput) for a damaged file and Error(kUnsupported) for a sound one of another kind (version 1,
// big-endian). Guarantees: tensor names unique, 1 to 4 dimensions of at least 1, sizes without overflow, data aligned,
// inside the file, and without overlap.
GgufHeader parse_gguf(const ByteInput& input);

}  // namespace stet
