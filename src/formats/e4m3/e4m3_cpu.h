// F8_E4M3 for one instruction set. Included by kernels/matvec/matvec_cpu.h.
#pragma once

#include "formats/e8m0_cpu.h"

namespace stet::STET_ISA {

// 512 times the value of 4 codes a lane, as 512 * high + low, both with the value's sign and at most 511 in size. [0]:
// 16-bit lanes of codes 0 and 2, [1]: of codes 1 and 3. (What the codes of NaN give is of no account: their scale is
// NaN.)
struct PlanesE4M3 {
  I high[2], low[2];

  explicit PlanesE4M3(I codes) {
    // A code (e, m) is a * t with a = m, and 8 more where e != 0, and t = 2^(e - 1), but 1 where e = 0.
    alignas(16) static constexpr uint8_t kHidden[16] = {0, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8};
    alignas(16) static constexpr uint8_t kPowerLow[16] = {1, 1, 2, 4, 8, 16, 32, 64, 128};
    alignas(16) static constexpr uint8_t kPowerHigh[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64};
    const I e = iand(wshr<3>(codes), iset1(0x0f0f0f0f)), even = iset1(0x00ff00ff),
            odd = iset1(static_cast<int32_t>(0xff00ff00u));
    const I a = ior(iand(codes, iset1(0x07070707)), lookup(table16(kHidden), e));
    const I t_low = lookup(table16(kPowerLow), e), t_high = lookup(table16(kPowerHigh), e);
    split(0, iand(a, even), ior(iand(t_low, even), wshl<8>(t_high)), wsar<15>(wshl<8>(codes)));
    split(1, wshr<8>(a), ior(wshr<8>(t_low), iand(t_high, odd)), wsar<15>(codes));
  }

 private:
  // negative: -1 where the code has a sign. a << 7 times t is the product a * t moved up by 7: its high half is a * t
  // >> 9.
  void split(int i, I a, I t, I negative) {
    high[i] = wsub(ixor(wmul_high(wshl<7>(a), t), negative), negative);
    low[i] = wsub(ixor(iand(wmul(a, t), iset1(0x01ff01ff)), negative), negative);
  }
};

template <>
struct CpuWeights<Format::e4m3> {
  static constexpr uint32_t kCodes = 512, kScales = 16, kAhead = 8192;

  template <int C>
  static void accumulate(const uint8_t* codes, const uint8_t* scales, const uint8_t* record, F* acc) {
    const Record<C> x{record};
    STET_UNROLL
    for (int h = 0; h < kTileVectors; ++h) {
      I high[C], low[C];
      STET_UNROLL
      for (int c = 0; c < C; ++c) high[c] = low[c] = izero();
      for (int g = 0; g < 8; ++g) {
        const PlanesE4M3 w(iload(codes + g * 64 + h * kLanes * 4));
        STET_UNROLL
        for (int c = 0; c < C; ++c) {
          const I q = bytes4(x.q(c) + 4 * g), even = even_bytes(q), odd = odd_bytes(q);
          high[c] = dot2(dot2(high[c], w.high[0], even), w.high[1], odd);
          low[c] = dot2(dot2(low[c], w.low[0], even), w.low[1], odd);
        }
      }
      const F dw = e8m0_scales(scales + h * kLanes, 0x1p-9f);
      STET_UNROLL
      for (int c = 0; c < C; ++c) {
        F& a = acc[c * kTileVectors + h];
        a = fma(mul(dw, x.d(c)), to_float(iadd(shl<9>(high[c]), low[c])), a);
      }
    }
  }
};

}  // namespace stet::STET_ISA
