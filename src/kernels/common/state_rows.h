// Rows of a layer's state, one for every `ratio` positions, addressed by absolute position: row i is that of positions
// ratio * i .. ratio * (i + 1) - 1. Rows that are kept for ever lie in chunks of 128 positions, as the KV cache does,
// so that all such state grows together; the others in a ring, where row i takes the place of row i - ring (ratio 1).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attend/kv_layout.h"
#include "kernels/common/fp8_row.h"

namespace stet {

enum class RowFormat : uint8_t { f32, f16, fp8 };

struct StateRows {
  uint8_t* first = nullptr;           // row 0, 64-byte aligned
  size_t chunk_stride = 0;            // bytes from one chunk of positions to the next
  uint32_t width = 0;                 // elements a row
  uint32_t ratio = 1;                 // a power of two up to kSlots
  uint32_t ring = 0;                  // rows of the ring; 0: no ring
  RowFormat format = RowFormat::f32;  // of the elements: state_row_values.h reads and writes any
  uint32_t rotated = 0;               // of fp8: the last elements of a row, which are kept in bf16

  STET_BOTH uint32_t rows_of_chunk() const { return kSlots / ratio; }
  STET_BOTH Fp8RowShape fp8_shape() const { return {width - rotated, rotated}; }
  STET_BOTH size_t row_bytes() const {
    return format == RowFormat::fp8 ? fp8_shape().bytes() : size_t{width} * (format == RowFormat::f16 ? 2 : 4);
  }
  STET_BOTH uint8_t* at(uint32_t i) const {
    if (ring != 0) return first + i % ring * row_bytes();
    const uint32_t n = rows_of_chunk();
    return first + i / n * chunk_stride + i % n * row_bytes();
  }
  // REQUIRES: f32
  STET_BOTH float* row(uint32_t i) const { return reinterpret_cast<float*>(at(i)); }
};

}  // namespace stet
