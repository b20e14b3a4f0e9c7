// Where the parsers of model files read from: a mapped file, or memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/mapped_file.h"

namespace stet {

// read() copies bytes [offset, offset + out.size()), which lie inside size.
struct ByteInput {
  std::string name;  // for messages
  uint64_t size = 0;
  std::function<void(uint64_t offset, std::span<std::byte> out)> read;

  // The file or the bytes outlive what is made of them.
  static ByteInput of(const MappedFile& file);
  static ByteInput of(std::span<const std::byte> bytes, std::string name);
};

// Path, device, inode, size and times of a file, as one line: what identifies its content cheaply.
std::string file_identity(const MappedFile& file);

}  // namespace stet
