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

// 32 columns of kLanes rows.
struct BlockPlanesE4M3 {
  PlanesE4M3 of[8];
  explicit BlockPlanesE4M3(const uint8_t* codes)
      : of{load4(codes, 0), load4(codes, 1), load4(codes, 2), load4(codes, 3),
           load4(codes, 4), load4(codes, 5), load4(codes, 6), load4(codes, 7)} {}

 private:
  static PlanesE4M3 load4(const uint8_t* codes, int g) { return PlanesE4M3(iload(codes + g * 64)); }
};

template <>
struct CpuWeights<Format::e4m3> {
  static constexpr uint32_t kCodes = 512, kScales = 16, kAhead = 8192;
  static constexpr bool kPlanes = true;

  template <int C>
  static void accumulate(const uint8_t* codes, const uint8_t* scales, const uint8_t* record, F* acc) {
    const Record<C> x{record};
    STET_UNROLL
    for (int h = 0; h < kTileVectors; ++h) {
      const BlockPlanesE4M3 w(codes + h * kLanes * 4);
      const F dw = e8m0_scales(scales + h * kLanes, 0x1p-9f);
      for (int c = 0; c < C; ++c) {
        I high = izero(), low = izero();
        STET_UNROLL
        for (int g = 0; g < 8; ++g) {
          const I q = bytes4(x.q(c) + 4 * g), even = even_bytes(q), odd = odd_bytes(q);
          high = dot2(dot2(high, w.of[g].high[0], even), w.of[g].high[1], odd);
          low = dot2(dot2(low, w.of[g].low[0], even), w.of[g].low[1], odd);
        }
        F& a = acc[c * kTileVectors + h];
        a = fma(mul(dw, x.d(c)), to_float(iadd(shl<9>(high), low)), a);
      }
    }
  }

  template <int C>
  static void accumulate_planes(const uint8_t* codes, const uint8_t* scales, const uint8_t* record, F* acc) {
    const Planes<C> x{record};
    const F planes = set1(512.0f);
    STET_UNROLL
    for (int h = 0; h < kTileVectors; ++h) {
      const BlockPlanesE4M3 w(codes + h * kLanes * 4);
      const F dw = e8m0_scales(scales + h * kLanes, 0x1p-18f);
      for (int c = 0; c < C; ++c) {
        I high = izero(), middle = izero(), low = izero();
        STET_UNROLL
        for (int g = 0; g < 8; ++g) STET_UNROLL
        for (int i = 0; i < 2; ++i) {
          const I x_high = x.high(c, g, i), x_low = x.low(c, g, i);
          high = dot2(high, w.of[g].high[i], x_high);
          middle = dot2(dot2(middle, w.of[g].high[i], x_low), w.of[g].low[i], x_high);
          low = dot2(low, w.of[g].low[i], x_low);
        }
        const F sum = fma(planes, fma(planes, to_float(high), to_float(middle)), to_float(low));
        F& a = acc[c * kTileVectors + h];
        a = fma(mul(dw, x.d(c)), sum, a);
      }
    }
  }
};

}  // namespace stet::STET_ISA
