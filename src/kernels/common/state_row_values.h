// Rows of state as floats, whatever format they are kept in. What a row holds is what was rounded when it was stored:
// rows of one pass read each other's values as later passes will.
#pragma once

#include <algorithm>

#include "base/error.h"
#include "base/fp.h"
#include "kernels/common/state_rows.h"

namespace stet {

// Row i [width]: in its place where it is f32, else in `space` [width].
static inline const float* load_row(const StateRows& rows, uint32_t i, float* space) {
  if (rows.format == RowFormat::f32) return rows.row(i);
  if (rows.format == RowFormat::fp8) {
    decode_fp8_row(rows.fp8_shape(), rows.at(i), space);
    return space;
  }
  const uint16_t* x = reinterpret_cast<const uint16_t*>(rows.at(i));
  for (uint32_t d = 0; d < rows.width; ++d) space[d] = f16_to_f32(x[d]);
  return space;
}

// x [width], rounded to the nearest of the format, ties to even. REQUIRES, of fp8: what round_cached left (or, of rows
// that are rotated as a whole, bf16): it comes back bit by bit.
static inline void store_row(const StateRows& rows, uint32_t i, const float* x) {
  if (rows.format == RowFormat::f32) {
    std::copy_n(x, rows.width, rows.row(i));
    return;
  }
  if (rows.format == RowFormat::fp8) {
    STET_CHECK(encode_fp8_row(rows.fp8_shape(), x, rows.at(i)) == rows.width);
    return;
  }
  uint16_t* y = reinterpret_cast<uint16_t*>(rows.at(i));
  for (uint32_t d = 0; d < rows.width; ++d) y[d] = f32_to_f16(x[d]);
}

}  // namespace stet
