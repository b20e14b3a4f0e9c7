// Rows of a layer's state, one for every `ratio` positions, addressed by absolute position: row i is that of positions
// ratio * i .. ratio * (i + 1) - 1. Rows that are kept for ever lie in chunks of 128 positions, as the KV cache does,
// so that all such state grows together; the others in a ring, where row i takes the place of row i - ring (ratio 1).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attend/kv_layout.h"

namespace stet {

struct StateRows {
  uint8_t* first = nullptr;  // row 0, 64-byte aligned
  size_t chunk_stride = 0;   // bytes from one chunk of positions to the next
  uint32_t width = 0;        // floats a row
  uint32_t ratio = 1;        // a power of two up to kSlots
  uint32_t ring = 0;         // rows of the ring; 0: no ring

  uint32_t rows_of_chunk() const { return kSlots / ratio; }
  float* row(uint32_t i) const {
    if (ring != 0) return reinterpret_cast<float*>(first) + size_t{i % ring} * width;
    const uint32_t n = rows_of_chunk();
    return reinterpret_cast<float*>(first + i / n * chunk_stride) + size_t{i % n} * width;
  }
};

}  // namespace stet
