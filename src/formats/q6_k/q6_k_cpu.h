// Q6_K for one instruction set. Included by kernels/matvec/matvec_cpu.h.
#pragma once

namespace stet::STET_ISA {

template <>
struct CpuWeights<Format::q6_k> {
  static constexpr uint32_t kCodes = 384, kScales = 64, kAhead = 8192;

  template <int C>
  static void accumulate(const uint8_t* codes, const uint8_t* scales, const uint8_t* record, F* acc) {
    const Record<C> x{record};
    const I low = iset1(0x0f0f0f0f), two = iset1(0x03030303);
    STET_UNROLL
    for (int h = 0; h < kTileVectors; ++h) {
      const I high_low = iload(codes + 256 + h * kLanes * 4), high_high = iload(codes + 320 + h * kLanes * 4);
      I w[8];
      STET_UNROLL
      for (int g = 0; g < 4; ++g) {
        const I raw = iload(codes + g * 64 + h * kLanes * 4);
        w[g] = ior(iand(raw, low), shl<4>(iand(shr_by(high_low, 2 * g), two)));
        w[4 + g] = ior(iand(shr<4>(raw), low), shl<4>(iand(shr_by(high_high, 2 * g), two)));
      }
      const I sc_low = load_i8(reinterpret_cast<const int8_t*>(scales) + h * kLanes);
      const I sc_high = load_i8(reinterpret_cast<const int8_t*>(scales) + 16 + h * kLanes);
      const F dw = load_f16(reinterpret_cast<const uint16_t*>(scales) + 16 + h * kLanes);
      STET_UNROLL
      for (int c = 0; c < C; ++c) {
        I s_low = x.bias32_low(c), s_high = x.bias32_high(c);
        STET_UNROLL
        for (int g = 0; g < 4; ++g) {
          s_low = dot4(s_low, w[g], bytes4(x.q(c) + 4 * g));
          s_high = dot4(s_high, w[4 + g], bytes4(x.q(c) + 16 + 4 * g));
        }
        F& a = acc[c * kTileVectors + h];
        a = fma(mul(dw, x.d(c)), to_float(iadd(imul(s_low, sc_low), imul(s_high, sc_high))), a);
      }
    }
  }
};

}  // namespace stet::STET_ISA
