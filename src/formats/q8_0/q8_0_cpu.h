// Q8_0 for one instruction set. Included by kernels/matvec/matvec_cpu.h.
#pragma once

namespace stet::STET_ISA {

template <>
struct CpuWeights<Format::q8_0> {
  static constexpr uint32_t kCodes = 512, kScales = 32, kAhead = 2048;

  template <int C>
  static void accumulate(const uint8_t* codes, const uint8_t* scales, const uint8_t* record, F* acc) {
    const Record<C> x{record};
    STET_UNROLL
    for (int h = 0; h < kTileVectors; ++h) {
      const OffsetBytes w(codes + h * kLanes * 4);
      const F dw = load_f16(reinterpret_cast<const uint16_t*>(scales) + h * kLanes);
      STET_UNROLL
      for (int c = 0; c < C; ++c) {
        F& a = acc[c * kTileVectors + h];
        a = fma(mul(dw, x.d(c)), to_float(w.dot(x.q(c), x.bias128(c))), a);
      }
    }
  }
};

}  // namespace stet::STET_ISA
