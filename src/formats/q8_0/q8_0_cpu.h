// Q8_0 for one instruction set. Included by kernels/matvec/matvec_cpu.h.
#pragma once

namespace stet::STET_ISA {

template <>
struct CpuWeights<Format::q8_0> {
  static constexpr uint32_t kCodes = 512, kScales = 32, kAhead = 2048;

  template <int C>
  static void accumulate(const uint8_t* codes, const uint8_t* scales, const uint8_t* record, F* acc) {
    accumulate_from<0>(codes, scales, Record<C>{record}, acc);
  }

 private:
  // Rows kFirst .. of x, some at a time.
  template <int kFirst, int C>
  static void accumulate_from(const uint8_t* codes, const uint8_t* scales, const Record<C>& x, F* acc) {
    constexpr int kRows = C - kFirst < kDotRows ? C - kFirst : kDotRows;
    OffsetDots<kRows, kTileVectors> dots;
    STET_UNROLL
    for (int g = 0; g < 8; ++g) {
      I w[kTileVectors];
      STET_UNROLL
      for (int h = 0; h < kTileVectors; ++h) w[h] = iload(codes + g * 64 + h * kLanes * 4);
      dots.add(w, [&](int c) { return x.q(kFirst + c) + 4 * g; });
    }
    STET_UNROLL
    for (int h = 0; h < kTileVectors; ++h) {
      const F dw = load_f16(reinterpret_cast<const uint16_t*>(scales) + h * kLanes);
      STET_UNROLL
      for (int c = kFirst; c < kFirst + kRows; ++c) {
        F& a = acc[c * kTileVectors + h];
        a = fma(mul(dw, x.d(c)), to_float(dots.total(c - kFirst, h, x.bias128(c))), a);
      }
    }
    if constexpr (kFirst + kRows < C) accumulate_from<kFirst + kRows>(codes, scales, x, acc);
  }
};

}  // namespace stet::STET_ISA
