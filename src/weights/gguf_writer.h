// Writes any tensor source as a GGUF file, version 3.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weights/tensor_source.h"

namespace stet {

// The header of a version 3 file: metadata and tensor table, padded to the start of the data. Tensor i of the table
// starts at the next aligned place after tensor i - 1. Metadata is stored in the narrowest of the types that GGUF
// readers expect: unsigned integers as u32 or u64, signed ones as i32 or i64, doubles as f32 where that is exact, else
// f64. Values of an array share one type. Throws Error(kUsage) for what no sound file holds: names over 64 bytes, no or
// more than 4 dimensions, rows that are not whole blocks.
std::vector<std::byte> gguf_header(const Metadata& metadata, const std::vector<TensorInfo>& tensors);

struct WriteGgufOptions {
  bool overwrite = false;
  // Called now and then from the writing thread; may throw to cancel, and then no file is left.
  std::function<void(uint64_t bytes_done, uint64_t bytes_total)> progress;
};

// Streams the source to a file that appears complete or not at all. Returns its bytes.
// Throws Error(kResource) when the disk is too full or fails, Error(kUsage) when the file exists and overwrite is not
// set, and whatever source.read() throws.
uint64_t write_gguf(const TensorSource& source, const std::string& path, const WriteGgufOptions& options = {});

}  // namespace stet
