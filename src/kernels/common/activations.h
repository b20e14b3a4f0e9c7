// Activations as the matrix-vector kernels read them: the rows of a pass in groups of 8, interleaved so that one pointer walks K.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/pack.h"

namespace stet {

constexpr uint32_t kGroup = 8;  // rows of a pass that one kernel call handles

// f32: group g is [K][cols] floats, at float offset 8 * g * K.
// i8:  group g is one record a block of 32, at byte offset 8 * g * (K / 32) * kActRecord; a record of `cols` rows is
//        int8 q[cols][32]
//        float d[cols]          the scale dx
//        float scaled_sum[cols] dx * sum of q, rounded once
//        int32 bias8[cols]      -8 * sum     (codes that are 8 above their value)
//        int32 bias128[cols]    -128 * sum   (codes that are 128 above)
//        int32 bias32[2][cols]  -32 * sum of the low and of the high 16 elements
// e4m3: group g is one record a block of 32, at byte offset 8 * g * (K / 32) * kPlaneRecord; a record of `cols` rows is
//        int16 planes[cols][2][32]  512 times the values, as 512 * high + low (both with the value's sign): high, then
//        low;
//                                   each four elements 0 1 2 3 in the order 0 2 1 3, as vectors pair them with bytes of
//                                   weights
//        float d[cols]              the scale dx of the 128 elements that the block is a quarter of
// cols = min(8, rows - 8 g).
constexpr uint32_t kActRecord = 56;     // bytes a row and block
constexpr uint32_t kPlaneRecord = 132;  // the same of e4m3

static inline size_t activation_bytes(ActKind kind, uint32_t rows, uint32_t k) {
  return kind == ActKind::f32 ? size_t{rows} * k * 4
                              : size_t{rows} * (k / 32) * (kind == ActKind::i8 ? kActRecord : kPlaneRecord);
}

struct Activations {
  ActKind kind = ActKind::i8;
  uint32_t rows = 0;  // M, at most kMaxRows
  uint32_t k = 0;
  void* data = nullptr;  // activation_bytes(kind, rows, k), 64-byte aligned

  uint32_t groups() const { return (rows + kGroup - 1) / kGroup; }
  uint32_t group_cols(uint32_t g) const { return rows - g * kGroup < kGroup ? rows - g * kGroup : kGroup; }
  const uint8_t* group(uint32_t g) const { return static_cast<const uint8_t*>(data) + group_offset(g); }
  uint8_t* group(uint32_t g) { return static_cast<uint8_t*>(data) + group_offset(g); }

 private:
  size_t group_offset(uint32_t g) const { return activation_bytes(kind, g * kGroup, k); }
};

// Fields of one i8 record.
struct ActRecord {
  uint8_t* base;
  uint32_t cols;

  int8_t* q(uint32_t c) const { return reinterpret_cast<int8_t*>(base) + c * 32; }
  float* d() const { return reinterpret_cast<float*>(base + cols * 32); }
  float* scaled_sum() const { return d() + cols; }
  int32_t* bias8() const { return reinterpret_cast<int32_t*>(scaled_sum() + cols); }
  int32_t* bias128() const { return bias8() + cols; }
  int32_t* bias32_low() const { return bias128() + cols; }
  int32_t* bias32_high() const { return bias32_low() + cols; }
};

static inline ActRecord act_record(const Activations& a, uint32_t row, uint32_t block) {
  const uint32_t g = row / kGroup, cols = a.group_cols(g);
  uint8_t* group = const_cast<Activations&>(a).group(g);
  return {group + size_t{block} * cols * kActRecord, cols};
}

// Fields of one e4m3 record.
struct PlaneRecord {
  uint8_t* base;
  uint32_t cols;

  int16_t* high(uint32_t c) const { return reinterpret_cast<int16_t*>(base) + c * 64; }
  int16_t* low(uint32_t c) const { return high(c) + 32; }
  float* d() const { return reinterpret_cast<float*>(base + cols * 128); }

  // Where element i of 32 lies in a plane.
  static constexpr uint32_t place(uint32_t i) { return i % 4 == 1 ? i + 1 : i % 4 == 2 ? i - 1 : i; }
};

static inline PlaneRecord plane_record(const Activations& a, uint32_t row, uint32_t block) {
  const uint32_t g = row / kGroup, cols = a.group_cols(g);
  uint8_t* group = const_cast<Activations&>(a).group(g);
  return {group + size_t{block} * cols * kPlaneRecord, cols};
}

}  // namespace stet
