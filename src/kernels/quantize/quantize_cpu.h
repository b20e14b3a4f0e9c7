// quantize for one instruction set: included once by each file of src/kernels/isa.
#pragma once

#include "kernels/quantize/quantize_common.h"

namespace stet::STET_ISA {

static inline void quantize(const float* x, uint32_t row, const Activations& out) {
  if (out.kind == ActKind::f32) return copy_row(x, row, out);
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
