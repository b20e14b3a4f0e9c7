// quantize for one instruction set: included once by each file of src/kernels/isa.
#pragma once

#include "kernels/quantize/quantize_common.h"

namespace stet::STET_ISA {

// 32 elements as planes: |x| * scale, at most 448 * 512, to four significant bits and to whole numbers.
static inline void plane_block(const float* x, float scale, int16_t* high, int16_t* low) {
  STET_UNROLL
  for (int i = 0; i < 32 / kLanes; ++i) {
    const I bits = as_int(load(x + i * kLanes)), negative = sar<31>(bits);
    const F size = mul(as_float(iand(bits, iset1(0x7fffffff))), set1(scale));
    // 1.5 * 2^20 times the power of two below size, or 8: its last bit is that power's fourth, so the addition rounds
    // there.
    const I power = imax(iand(as_int(size), iset1(0x7f800000)), as_int(set1(8.0f)));
    const F round = as_float(iadd(power, iset1(20 << 23 | 1 << 22)));
    const I v = to_int(sub(add(size, round), round));
    store_swapped_i16(high + i * kLanes, isub(ixor(shr<9>(v), negative), negative));
    store_swapped_i16(low + i * kLanes, isub(ixor(iand(v, iset1(511)), negative), negative));
  }
}

static inline void quantize_planes(const float* x, uint32_t row, const Activations& out) {
  for (uint32_t first = 0; first < out.k; first += kPlaneGroup) {
    const uint32_t end = out.k - first < kPlaneGroup ? out.k : first + kPlaneGroup;
    I largest = izero();
    for (uint32_t i = first; i < end; i += kLanes)
      largest = imax(largest, iand(as_int(load(x + i)), iset1(0x7fffffff)));
    const BlockScale scale = plane_scale(static_cast<uint32_t>(max_lane(largest)));
    for (uint32_t i = first; i < end; i += 32) {
      const PlaneRecord record = plane_record(out, row, i / 32);
      record.d()[row % kGroup] = scale.d;
      if (scale.inverse == 0.0f) {
        __builtin_memset(record.high(row % kGroup), 0, 128);
      } else {
        plane_block(x + i, scale.inverse * 512.0f, record.high(row % kGroup), record.low(row % kGroup));
      }
    }
  }
}

static inline void quantize(const float* x, uint32_t row, const Activations& out) {
  if (out.kind == ActKind::f32) return copy_row(x, row, out);
  if (out.kind == ActKind::e4m3) return quantize_planes(x, row, out);
  constexpr int kVectors = 32 / kLanes;
  for (uint32_t b = 0; b < out.k / 32; ++b, x += 32) {
    F v[kVectors];
    I largest = izero();
    STET_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      v[i] = load(x + i * kLanes);
      largest = imax(largest, iand(as_int(v[i]), iset1(0x7fffffff)));
    }
    const BlockScale scale = block_scale(static_cast<uint32_t>(max_lane(largest)));
    const ActRecord record = act_record(out, row, b);
    int8_t* q = record.q(row % kGroup);
    I sums[2] = {izero(), izero()};
    if (scale.inverse == 0.0f) {
      __builtin_memset(q, 0, 32);
    } else {
      STET_UNROLL
      for (int i = 0; i < kVectors; ++i) {
        const I code = imin(iset1(127), imax(iset1(-127), to_int(mul(v[i], set1(scale.inverse)))));
        store_i8(q + i * kLanes, code);
        sums[i * 2 / kVectors] = iadd(sums[i * 2 / kVectors], code);
      }
    }
    // Both sums are below 2^12 in size: one reduction adds them, in the two halves of a lane.
    const int32_t both = sum_lanes(iadd(sums[0], shl<16>(sums[1])));
    const int32_t low = static_cast<int16_t>(both & 0xffff);
    finish_record(record, row % kGroup, scale.d, low, (both - low) >> 16);
  }
}

}  // namespace stet::STET_ISA
