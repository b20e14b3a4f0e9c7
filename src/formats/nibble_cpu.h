// The decode that Q4_0 and Q4_1 share, for one instruction set (nibble_pack.h draws the tile). Included by their *_cpu.h.
#pragma once

namespace stet::STET_ISA {

template <bool kMinimum>
struct NibbleWeights {
  static constexpr uint32_t kCodes = 256, kScales = kMinimum ? 64 : 32, kAhead = 8192;

  template <int C>
  static void accumulate(const uint8_t* codes, const uint8_t* scales, const uint8_t* record, F* acc) {
    const Record<C> x{record};
    const I mask = iset1(0x0f0f0f0f);
    STET_UNROLL
    for (int h = 0; h < kTileVectors; ++h) {
      I w[8];
      STET_UNROLL
      for (int g = 0; g < 4; ++g) {
        const I raw = iload(codes + g * 64 + h * kLanes * 4);
        w[g] = iand(raw, mask);
        w[4 + g] = iand(shr<4>(raw), mask);
      }
      const F dw = load_f16(reinterpret_cast<const uint16_t*>(scales) + h * kLanes);
      const F mw = kMinimum ? load_f16(reinterpret_cast<const uint16_t*>(scales) + 16 + h * kLanes) : zero();
      STET_UNROLL
      for (int c = 0; c < C; ++c) {
        F& a = acc[c * kTileVectors + h];
        const F dx = x.d(c);
        a = fma(mul(dw, dx), to_float(dot_nibbles(w, x.q(c), kMinimum ? izero() : x.bias8(c))), a);
        if constexpr (kMinimum) a = fma(mw, x.scaled_sum(c), a);
      }
    }
  }
};

}  // namespace stet::STET_ISA
