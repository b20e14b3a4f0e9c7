// One value rounded, and the scale of a group that is: what processors and GPUs share of kernels/rounding.
#pragma once

#include "formats/mxfp4/mxfp4.h"
#include "kernels/quantize/quantize_common.h"

namespace stet {

STET_BOTH static inline float to_e4m3(float v) { return e4m3_to_f32(f32_to_e4m3(v)); }

// |v| <= 6
STET_BOTH static inline float to_e2m1(float v) {
  const uint32_t bits = bits_of_float(v), size = bits & 0x7fffffffu;
  if (size < bits_of_float(1.0f)) return rint32(v * 2.0f) / 2.0f;
  return float_of_bits((bits + 0x1fffffu + ((bits >> 22) & 1u)) & ~0x3fffffu);
}
// The scale of e2m1 groups. max_bits: as power_scale has it.
STET_BOTH static inline BlockScale index_scale(uint32_t max_bits) {
  return power_scale(max_bits, kLargestE2M1 * 0x1p-126f, kLargestE2M1);
}

}  // namespace stet
