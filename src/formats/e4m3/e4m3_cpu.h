// F8_E4M3 for one instruction set. Included by kernels/matvec/matvec_cpu.h.
#pragma once

#include "formats/e8m0_cpu.h"

namespace stet::STET_ISA {

// 4 codes a lane. A code (e, m) stands for a * 2^(e - 1) / 512 with a = m + 8, but a = m and 2^0 where e = 0. [0]:
// 16-bit lanes of codes 0 and 2, [1]: of codes 1 and 3. (What the codes of NaN give is of no account: their scale is
// NaN.)
struct CodesE4M3 {
  I e;            // bytes
  I a[2];         // 16-bit lanes
  I negative[2];  // -1 where the code has a sign

  explicit CodesE4M3(I codes) : e(iand(wshr<3>(codes), iset1(0x0f0f0f0f))) {
    alignas(16) static constexpr uint8_t kHidden[16] = {0, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8};
    const I all = ior(iand(codes, iset1(0x07070707)), lookup(table16(kHidden), e));
    a[0] = even(all), a[1] = wshr<8>(all);
    negative[0] = wsar<15>(wshl<8>(codes)), negative[1] = wsar<15>(codes);
  }
  I with_sign(I x, int i) const { return wsub(ixor(x, negative[i]), negative[i]); }
  static I even(I bytes) { return iand(bytes, iset1(0x00ff00ff)); }
};

// 512 times the values as 512 * high + low, both with the value's sign and at most 511 in size: docs/numerics.md 3.3.
struct PlanesE4M3 {
  I high[2], low[2];

  explicit PlanesE4M3(I codes) {
    // The two bytes of 2^(e - 1).
    alignas(16) static constexpr uint8_t kLow[16] = {1, 1, 2, 4, 8, 16, 32, 64, 128};
    alignas(16) static constexpr uint8_t kHigh[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64};
    const CodesE4M3 c(codes);
    const I t_low = lookup(table16(kLow), c.e), t_high = lookup(table16(kHigh), c.e);
    const I power[2] = {ior(CodesE4M3::even(t_low), wshl<8>(t_high)),
                        ior(wshr<8>(t_low), isub(t_high, CodesE4M3::even(t_high)))};
    STET_UNROLL
    for (int i = 0; i < 2; ++i) {
      // a * 2^7 times the power is the value moved up by 7: its high half is the value's bits from 9 on.
      high[i] = c.with_sign(wmul_high(wshl<7>(c.a[i]), power[i]), i);
      low[i] = c.with_sign(iand(wmul(c.a[i], power[i]), iset1(0x01ff01ff)), i);
    }
  }
};

// The same as 128 * high + low, at most 1920 in size: whatever is cheapest, for sums that are integers in the end.
struct HalvesE4M3 {
  I high[2], low[2];

  explicit HalvesE4M3(I codes) {
    // 2^(e - 1) of the lower half of the exponents, 2^(e - 8) of the upper.
    alignas(16) static constexpr uint8_t kLow[16] = {1, 1, 2, 4, 8, 16, 32, 64};
    alignas(16) static constexpr uint8_t kHigh[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128};
    const CodesE4M3 c(codes);
    const I t_low = lookup(table16(kLow), c.e), t_high = lookup(table16(kHigh), c.e);
    const I a[2] = {c.with_sign(c.a[0], 0), c.with_sign(c.a[1], 1)};
    low[0] = wmul(a[0], CodesE4M3::even(t_low)), low[1] = wmul(a[1], wshr<8>(t_low));
    high[0] = wmul(a[0], CodesE4M3::even(t_high)), high[1] = wmul(a[1], wshr<8>(t_high));
  }
};

// 32 columns of kLanes rows.
template <typename Split>
struct BlockE4M3Of {
  Split of[8];
  explicit BlockE4M3Of(const uint8_t* codes)
      : of{load4(codes, 0), load4(codes, 1), load4(codes, 2), load4(codes, 3),
           load4(codes, 4), load4(codes, 5), load4(codes, 6), load4(codes, 7)} {}

 private:
  static Split load4(const uint8_t* codes, int g) { return Split(iload(codes + g * 64)); }
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
      const BlockE4M3Of<HalvesE4M3> w(codes + h * kLanes * 4);
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
        a = fma(mul(dw, x.d(c)), to_float(iadd(shl<7>(high), low)), a);
      }
    }
  }

  template <int C>
  static void accumulate_planes(const uint8_t* codes, const uint8_t* scales, const uint8_t* record, F* acc) {
    const Planes<C> x{record};
    const F planes = set1(512.0f);
    STET_UNROLL
    for (int h = 0; h < kTileVectors; ++h) {
      const BlockE4M3Of<PlanesE4M3> w(codes + h * kLanes * 4);
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
