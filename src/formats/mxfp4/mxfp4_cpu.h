// MXFP4 for one instruction set. Included by kernels/matvec/matvec_cpu.h.
#pragma once

#include "formats/e8m0_cpu.h"

namespace stet::STET_ISA {

template <>
struct CpuWeights<Format::mxfp4> {
  static constexpr uint32_t kCodes = 256, kScales = 16, kAhead = 8192;

  // Codes become bytes 12 above twice their value: 0 .. 24.
  template <int C>
  static void accumulate(const uint8_t* codes, const uint8_t* scales, const uint8_t* record, F* acc) {
    alignas(16) static constexpr uint8_t kAbove[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
    const Record<C> x{record};
    const I mask = iset1(0x0f0f0f0f), table = table16(kAbove);
    STET_UNROLL
    for (int h = 0; h < kTileVectors; ++h) {
      I w[8];
      STET_UNROLL
      for (int g = 0; g < 4; ++g) {
        const I raw = iload(codes + g * 64 + h * kLanes * 4);
        w[g] = lookup(table, iand(raw, mask));
        w[4 + g] = lookup(table, iand(shr<4>(raw), mask));
      }
      const F dw = e8m0_scales(scales + h * kLanes, 0.5f);
      STET_UNROLL
      for (int c = 0; c < C; ++c) {
        F& a = acc[c * kTileVectors + h];
        I sum = iadd(x.bias8(c), sar<1>(x.bias8(c)));  // -12 * sum of q
        STET_UNROLL
        for (int g = 0; g < 8; ++g) sum = dot4(sum, w[g], bytes4(x.q(c) + 4 * g));
        a = fma(mul(dw, x.d(c)), to_float(sum), a);
      }
    }
  }
};

}  // namespace stet::STET_ISA
