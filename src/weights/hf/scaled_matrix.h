// A matrix that a checkpoint stores as two tensors, its codes and their scales (powers of two: F8_E8M0), read as the
// blocks of one weight format.
//
//   dtype    format  codes: NAME.weight                         scales: NAME.scale
//   F8_E4M3  e4m3    [n, k]                                     [ceil(n / 128), k / 128]
//   I8       mxfp4   [n, k / 2], the even column in low nibbles [n, k / 32]
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/format.h"
#include "weights/byte_input.h"
#include "weights/hf/safetensors.h"

namespace stet {

inline constexpr std::string_view kHfFp8 = "F8_E4M3", kHfFp4 = "I8", kHfScales = "F8_E8M0";

// The format of a matrix whose codes have this dtype; nothing: it has no scales beside it.
std::optional<Format> hf_codes_format(std::string_view dtype);
// "X.scale" as "X.weight"; empty: it is not a name of scales.
std::string hf_name_of_codes(std::string_view scales);
// "X.weight" as "X.scale".
std::string hf_name_of_scales(std::string_view codes);

// A tensor, and the file that it lies in.
struct HfPart {
  ByteInput input;
  SafetensorsTensor tensor;
};

class ScaledMatrix {
 public:
  // REQUIRES: codes of a dtype that hf_codes_format() knows. Throws Error(kInput), or Error(kUnsupported) for a width
  // that is not full of blocks; the message names file, tensor and numbers.
  ScaledMatrix(HfPart codes, HfPart scales);

  Format format() const { return format_; }
  uint64_t rows() const { return rows_; }
  uint64_t cols() const { return cols_; }
  uint64_t bytes() const { return rows_ * row_bytes(); }  // of all blocks
  const SafetensorsTensor& codes() const { return codes_.tensor; }
  const SafetensorsTensor& scales() const { return scales_.tensor; }

  // Copies bytes [offset, offset + out.size()) of the rows of blocks. Holds a few rows at a time. Safe from several
  // threads. Throws Error(kInput) for a scale that is no number.
  void read(uint64_t offset, std::span<std::byte> out) const;

 private:
  struct Scratch;
  uint64_t blocks() const { return cols_ / traits(format_).block_elements; }  // of a row
  uint64_t row_bytes() const { return blocks() * traits(format_).block_bytes; }
  void check_scales() const;
  void read_rows(uint64_t first, uint64_t count, std::byte* out, Scratch& scratch) const;

  HfPart codes_, scales_;
  Format format_;
  uint64_t rows_ = 0, cols_ = 0;
};

}  // namespace stet
