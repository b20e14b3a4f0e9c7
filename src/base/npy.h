// NumPy's .npy files: float32 and int32 arrays in C order, little-endian.
//
//   file   := magic "\x93NUMPY", version (two bytes: 1 0), header_bytes (u16), header, data
//   header := "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", spaces, "\n": data starts at a multiple of
//   64
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.h"

namespace stet {

enum class NpyType { kF32, kI32 };

// Writes an array whose shape is known from the start, piece by piece; the file appears complete under its name at
// commit(), or not at all. Throws Error(kResource) when the disk is full or the folder cannot be written, Error(kUsage)
// when the path is no regular file.
class NpyWriter {
 public:
  // Replaces a file that is there already.
  NpyWriter(const std::string& path, NpyType type, const std::vector<uint64_t>& shape);

  // Appends elements in C order. The wrong type, or more elements than the shape holds, are internal errors.
  void write(std::span<const float> values);
  void write(std::span<const int32_t> values);
  // Fewer elements than the shape holds are an internal error.
  void commit();

 private:
  void append(NpyType type, std::span<const std::byte> bytes);

  NpyType type_;
  uint64_t bytes_left_;
  AtomicFile file_;
};

// An array in memory.
struct NpyArray {
  NpyType type = NpyType::kF32;
  std::vector<uint64_t> shape;
  std::vector<float> f32;    // the elements in C order, where type is kF32
  std::vector<int32_t> i32;  // where it is kI32
};

// Reads a file of format version 1, 2 or 3. Throws Error(kInput) when it is missing, cut short, too long or damaged,
// and Error(kUnsupported) for other element types and Fortran order.
NpyArray read_npy(const std::string& path);

}  // namespace stet
