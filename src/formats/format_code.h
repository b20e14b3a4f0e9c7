// What a format's folder hands to the table, and what the quantisers share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "base/fp.h"
#include "formats/e8m0.h"

namespace stet {

// The part of FormatTraits that the folder of a format knows; its name and number come from formats.def.
struct FormatCode {
  uint32_t block_elements;
  uint32_t block_bytes;
  bool integer_block;
  void (*dequantize)(const void* blocks, float* out, size_t n);
  void (*quantize)(const float* x, void* blocks, size_t n);
};

// Each format's folder defines one of these: FormatCode format_code_q4_0().
#define FORMAT(id, name, ggml) FormatCode format_code_##id();
#include "formats/formats.def"
#undef FORMAT

template <typename Block, void (*kDecode)(const Block&, float*)>
void dequantize_blocks(const void* blocks, float* out, size_t n) {
  STET_CHECK(n % Block::kElements == 0);
  const Block* block = static_cast<const Block*>(blocks);
  for (size_t i = 0; i < n; i += Block::kElements) kDecode(*block++, out + i);
}

template <typename Block, void (*kEncode)(const float*, Block&)>
void quantize_blocks(const float* x, void* blocks, size_t n) {
  STET_CHECK(n % Block::kElements == 0);
  Block* block = static_cast<Block*>(blocks);
  for (size_t i = 0; i < n; i += Block::kElements) kEncode(x + i, *block++);
}

// kDecode and kEncode handle one block of Block::kElements elements.
template <typename Block, void (*kDecode)(const Block&, float*), void (*kEncode)(const float*, Block&)>
FormatCode format_code() {
  return {Block::kElements, sizeof(Block), Block::kIntegerBlock, dequantize_blocks<Block, kDecode>,
          quantize_blocks<Block, kEncode>};
}

static inline bool is_finite(float x) { return x - x == 0.0f; }

// A scale or minimum as f16. Throws Error(kInput) when it leaves f16's range, which also catches non-finite elements.
static inline uint16_t checked_f16(float x, const char* format) {
  const uint16_t h = f32_to_f16(x);
  if ((h & 0x7c00u) == 0x7c00u)
    fail(Code::kInput,
         "cannot encode as {}: a block needs the scale {}, and f16 holds at most 65504; scale the tensor down", format,
         x);
  return h;
}

// 1/d, or 0 where d is too small for a finite reciprocal: then every element of the block encodes zero (or the
// minimum).
static inline float finite_reciprocal(float d) {
  const float r = d == 0.0f ? 0.0f : 1.0f / d;
  return is_finite(r) ? r : 0.0f;
}

// The exponent of the scale with which the published quantiser encodes a block whose codes reach up to `largest`: the
// least that holds the block's largest magnitude, or 1e-30 where that is smaller. Throws Error(kInput) for elements
// that are not finite.
static inline int block_exponent(const float* x, uint32_t n, float largest, const char* format) {
  float a = 1e-30f;
  for (uint32_t i = 0; i < n; ++i) {
    if (!is_finite(x[i])) fail(Code::kInput, "cannot encode as {}: element {} of a block is {}", format, i, x[i]);
    if (__builtin_fabsf(x[i]) > a) a = __builtin_fabsf(x[i]);
  }
  return exponent_above(a, largest);
}

}  // namespace stet
