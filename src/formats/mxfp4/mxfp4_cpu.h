// MXFP4 for one instruction set. Included by kernels/matvec/matvec_cpu.h.
#pragma once

#include "formats/e8m0_cpu.h"

namespace stet::STET_ISA {

template <>
struct CpuWeights<Format::mxfp4> {
  static constexpr uint32_t kCodes = 256, kScales = 16, kAhead = 8192;
  static constexpr bool kPlanes = true;

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

  template <int C>
  static void accumulate_planes(const uint8_t* codes, const uint8_t* scales, const uint8_t* record, F* acc) {
    alignas(16) static constexpr int8_t kTwice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    const Planes<C> x{record};
    const I mask = iset1(0x0f0f0f0f), table = table16(reinterpret_cast<const uint8_t*>(kTwice));
    STET_UNROLL
    for (int h = 0; h < kTileVectors; ++h) {
      I w[8][2];
      STET_UNROLL
      for (int g = 0; g < 4; ++g) {
        const I raw = iload(codes + g * 64 + h * kLanes * 4);
        const I first = lookup(table, iand(raw, mask)), second = lookup(table, iand(shr<4>(raw), mask));
        w[g][0] = even_bytes(first), w[g][1] = odd_bytes(first);
        w[4 + g][0] = even_bytes(second), w[4 + g][1] = odd_bytes(second);
      }
      const F dw = e8m0_scales(scales + h * kLanes, 0x1p-10f);
      for (int c = 0; c < C; ++c) {
        I high = izero(), low = izero();
        STET_UNROLL
        for (int g = 0; g < 8; ++g) STET_UNROLL
        for (int i = 0; i < 2; ++i) {
          high = dot2(high, w[g][i], x.high(c, g, i));
          low = dot2(low, w[g][i], x.low(c, g, i));
        }
        F& a = acc[c * kTileVectors + h];
        a = fma(mul(dw, x.d(c)), fma(set1(512.0f), to_float(high), to_float(low)), a);
      }
    }
  }
};

}  // namespace stet::STET_ISA
