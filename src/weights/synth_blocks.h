// Random weights, written directly as blocks of a format: fast enough to stand in for a file, and a pure function of
// their place.
//
// A tensor is a sequence of units (one block of a quantised format, eight elements of a float one). Unit i depends on
// the key and i alone: its bytes are Philox words of stream 0, its scale of stream 1 (synth_blocks.cpp says which). So
// any range can be made in any order by any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/format.h"

namespace stet {

// Philox words of counters (first, stream), (first + 1, stream), ...: words.size() must be a multiple of 4. The 64-bit
// counter fills words 0 and 1 of Philox's, the stream word 2.
void philox_fill(uint64_t key, uint32_t stream, uint64_t first, std::span<uint32_t> words);

class SynthBlocks {
 public:
  // Elements are spread evenly around center with the given standard deviation (quantised formats: center 0 only).
  SynthBlocks(Format format, uint64_t key, float center, float deviation);

  // Bytes [offset, offset + out.size()) of the tensor.
  void read(uint64_t offset, std::span<std::byte> out) const;

 private:
  static constexpr size_t kBatchUnits = 64;

  void make_units(uint64_t first, size_t units, std::byte* out) const;
  void make_q4(uint64_t first, size_t units, std::byte* out) const;
  void make_q8(uint64_t first, size_t units, std::byte* out) const;
  void make_powers(uint64_t first, size_t units, std::byte* out) const;
  void make_q6(uint64_t first, size_t units, std::byte* out) const;
  template <typename T>
  void make_floats(const std::vector<T>& table, uint64_t first, size_t units, std::byte* out) const;
  void fill_tables(float center, float deviation);

  Format format_;
  uint64_t key_;
  size_t unit_bytes_;
  std::vector<uint16_t>
      table16_;  // quantised: the 256 scales, of F8_E4M3 and MXFP4 as E8M0; F16 and BF16: the 4096 values
  std::vector<uint16_t> minima_;  // Q4_1: the minimum that belongs to each scale
  std::vector<float> table32_;    // F32: the 4096 values
};

}  // namespace stet
