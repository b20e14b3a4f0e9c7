// Inputs for the kernel tests: random, all-extreme, subnormal and non-finite values, and packed matrices.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "base/fp.h"
#include "formats/pack.h"
#include "kernels/common/activations.h"
#include "kernels/kernels.h"

namespace stet::test {

enum class Fill { normal, extreme, tiny, nonfinite };

inline std::vector<float> make_values(size_t n, Fill fill, uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& v : x) {
    v = normal(rng);
    if (fill == Fill::extreme) v = (rng() & 1) ? 1.0f : -1.0f;  // every code becomes +-127
    if (fill == Fill::tiny) v *= 0x1p-130f;
    if (fill == Fill::nonfinite && rng() % 97 == 0) v = (rng() & 1) ? __builtin_inff() : __builtin_nanf("");
  }
  return x;
}

// Blocks of formats whose scale is one byte E8M0, then the codes: extremes and random codes, with scales as they are,
// or the least ones, or (nonfinite) here and there NaN. NaN codes of e4m3 occur in `nonfinite` only.
inline std::vector<uint8_t> power_blocks(std::vector<uint8_t> blocks, const FormatTraits& t, Fill fill, uint32_t seed) {
  std::mt19937 rng(seed);
  const bool e4m3 = t.format == Format::e4m3;
  for (size_t b = 0; b < blocks.size(); b += t.block_bytes) {
    const size_t kind = rng() % 5;
    const int extremes[] = {0x7e, 0xfe, e4m3 ? 0x3d : 0x77, e4m3 ? 0xbd : 0xff};
    for (size_t i = 1; i < t.block_bytes; ++i) {
      uint8_t code = kind < 4 ? static_cast<uint8_t>(extremes[kind]) : static_cast<uint8_t>(rng());
      if (fill != Fill::nonfinite && e4m3 && (code & 0x7f) == 0x7f) code ^= 1;
      blocks[b + i] = code;
    }
    if (fill == Fill::tiny) blocks[b] = static_cast<uint8_t>(rng() % 12);
    if (fill == Fill::nonfinite && rng() % 31 == 0) blocks[b] = 255;
  }
  return blocks;
}

// Encoded rows with random bytes and sane scales: every code pattern occurs, Q8_0's -128 too.
inline std::vector<uint8_t> make_blocks(Format format, uint32_t rows, uint32_t cols, Fill fill, uint32_t seed) {
  const FormatTraits& t = traits(format);
  std::vector<uint8_t> blocks(size_t{rows} * cols / t.block_elements * t.block_bytes);
  const std::vector<float> x = make_values(size_t{rows} * cols, Fill::normal, seed);
  t.quantize(x.data(), blocks.data(), x.size());
  if (!t.integer_block || fill == Fill::normal) return blocks;
  if (format == Format::e4m3 || format == Format::mxfp4) return power_blocks(std::move(blocks), t, fill, seed + 1);
  // Keep each block's f16 scale fields and overwrite the codes: all ones, all zeros or random.
  std::mt19937 rng(seed + 1);
  const size_t head = format == Format::q4_1 ? 4 : format == Format::q6_k ? 0 : 2;
  const size_t tail = format == Format::q6_k ? 2 : 0;
  for (size_t b = 0; b < blocks.size(); b += t.block_bytes) {
    const uint32_t kind = rng() % 4;
    for (size_t i = head; i + tail < t.block_bytes; ++i)
      blocks[b + i] = static_cast<uint8_t>(kind == 0 ? 0x00 : kind == 1 ? 0xff : kind == 2 ? 0x80 : rng());
  }
  return blocks;
}

struct Packed {
  std::vector<uint8_t> storage;
  PackedMatrix matrix;
};

inline Packed make_packed(Format format, uint32_t rows, uint32_t cols, Fill fill, uint32_t seed) {
  const auto blocks = make_blocks(format, rows, cols, fill, seed);
  std::vector<uint8_t> bytes = pack_matrix(format, blocks.data(), rows, cols);
  Packed p;
  p.storage.resize(bytes.size() + 64 + 8192);  // 64 to align; the rest so that prefetched addresses exist
  uint8_t* data = p.storage.data() + (64 - reinterpret_cast<uintptr_t>(p.storage.data()) % 64) % 64;
  std::copy(bytes.begin(), bytes.end(), data);
  p.matrix = {format, rows, cols, data};
  return p;
}

// A buffer poisoned with NaN, so that what a kernel does not write shows.
inline std::vector<float> poisoned(size_t n) { return std::vector<float>(n, float_of_bits(0x7fc0dead)); }

// The first index where a and b differ, or n. All NaN compare as one.
inline size_t first_difference(const float* a, const float* b, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (bits_of_float(a[i]) != bits_of_float(b[i]) && !(a[i] != a[i] && b[i] != b[i])) return i;
  return n;
}

}  // namespace stet::test
