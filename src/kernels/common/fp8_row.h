// A cached row of DeepSeek V4 in fewer bytes than its values take, without loss: what the published reference leaves in
// a row (tools/oracle/deepseek_v4/formats.py, act_quant over groups of 64) is e4m3 times a power of two, and bf16 where
// the row was rotated.
//
//   [codes] e4m3, one an element that is not rotated
//   [rotated] bf16
//   [groups] E8M0, one for 64 codes (the last group may be shorter): 2^(byte - 127); then zeros up to 8 bytes
//
// 448 codes and 64 rotated elements make 584 bytes, which are what other engines keep too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/contract.h"

namespace stet {

struct Fp8RowShape {
  static constexpr uint32_t kGroup = 64;

  uint32_t codes = 0;    // elements that are not rotated, the first ones
  uint32_t rotated = 0;  // the last ones

  STET_BOTH uint32_t width() const { return codes + rotated; }
  STET_BOTH uint32_t groups() const { return (codes + kGroup - 1) / kGroup; }
  STET_BOTH size_t scales_at() const { return codes + size_t{2} * rotated; }
  STET_BOTH size_t bytes() const { return scales_at() + (size_t{groups()} + 7) / 8 * 8; }
};

// x [width] into row [bytes]. Returns width, or the first element whose bits would not come back; row is then
// undefined. A group that act_quant made always comes back: its scale may be another one (224 times s is 448 times s /
// 2), the values are the same, zeros with their sign. NaN comes back as some NaN.
uint32_t encode_fp8_row(const Fp8RowShape& shape, const float* x, uint8_t* row);
// row [bytes] into x [width].
void decode_fp8_row(const Fp8RowShape& shape, const uint8_t* row, float* x);

}  // namespace stet
