// What a pack holds and where: decided from a source's tensor table alone, before a byte of it is read.
//
// The data of a pack is its tensors in the order of the source, each aligned to 64 bytes: matrices as tiles
// (formats/pack.h), vectors as f32. A tensor is made, hashed and verified in pieces: runs of tiles (of blocks, for a
// vector) that come from about 1 MiB of the source. So several threads share one large tensor, and no thread ever holds
// a whole one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/pack.h"
#include "weights/tensor_source.h"

namespace stet {

// Readable bytes behind the last tensor: kernels prefetch ahead of what they read.
inline constexpr uint64_t kPackSlackBytes = 8192;

// A run of whole tiles or blocks of one tensor.
struct PackPiece {
  uint64_t source_offset;  // inside the source tensor
  uint64_t source_bytes;
  uint64_t offset;  // inside the packed tensor
  uint64_t bytes;
};

struct PackTensor {
  std::string name;
  bool is_vector = false;
  Format source_format = Format::f32;
  Format format = Format::f32;  // as packed
  uint32_t rows = 0;            // of a vector: 1
  uint32_t cols = 0;            // of a vector: its length
  uint64_t offset = 0;          // from the start of the data
  uint64_t bytes = 0;           // packed

  // Of the source's bytes and of the packed bytes: hashes over the hashes of the pieces. Set by build_pack().
  std::string source_sha256;
  uint64_t checksum = 0;

  uint64_t source_bytes() const { return source_row_bytes() * rows; }
  uint64_t source_row_bytes() const;
  uint32_t pieces() const;
  PackPiece piece(uint32_t index) const;

 private:
  // A piece is a run of units: tiles of a matrix, blocks of a vector.
  uint64_t units() const;
  uint64_t units_of_piece() const;
  uint64_t unit_source_bytes() const;
  uint64_t unit_bytes() const;
};

struct PackPlan {
  bool dequantize = false;  // every matrix is F32
  std::vector<PackTensor> tensors;
  uint64_t data_bytes = 0;  // without slack
  uint64_t source_bytes() const;
};

// Throws Error(kUnsupported) for a tensor that is neither a vector nor a matrix, and Error(kInput) for sizes that no
// sound source has.
PackPlan plan_pack(const TensorSource& source, bool dequantize);

// Sets offset and bytes of a tensor behind `data_bytes` bytes of data, and moves data_bytes to its end. False when its
// shape does not fit its formats or anything would be larger than 2^56 bytes.
bool place_tensor(PackTensor& tensor, uint64_t& data_bytes);

// The content address of a pack: SHA-256 over the layout, the target, the options and each tensor's name, shape,
// formats and source digest. REQUIRES: every source_sha256 set.
std::string pack_key(const PackPlan& plan);

}  // namespace stet
