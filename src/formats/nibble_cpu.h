// The decode that Q4_0 and Q4_1 share, for one instruction set (nibble_pack.h draws the tile). Included by their *_cpu.h.
#pragma once

namespace stet::STET_ISA {

template <bool kMinimum>
struct NibbleWeights {
  static constexpr uint32_t kCodes = 256, kScales = kMinimum ? 64 : 32, kAhead = 8192;

  template <int C>
  static void accumulate(const uint8_t* codes, const uint8_t* scales, const uint8_t* record, F* acc) {
    const Record<C> x{record};
    if constexpr (kTileVectors == 1) {
      accumulate_decoded(codes, scales, x, acc);
    } else {
      accumulate_from<0>(codes, scales, x, acc);
    }
  }

 private:
  // Of the rows of vector h.
  struct Scales {
    F dw, mw;
    Scales(const uint8_t* scales, int h)
        : dw(load_f16(reinterpret_cast<const uint16_t*>(scales) + h * kLanes)),
          mw(kMinimum ? load_f16(reinterpret_cast<const uint16_t*>(scales) + 16 + h * kLanes) : zero()) {}
    template <int C>
    void add(const Record<C>& x, int c, I dot, F& acc) const {
      acc = fma(mul(dw, x.d(c)), to_float(dot), acc);
      if constexpr (kMinimum) acc = fma(mw, x.scaled_sum(c), acc);
    }
  };

  static I low_codes(I raw) { return iand(raw, iset1(0x0f0f0f0f)); }
  static I high_codes(I raw) { return iand(shr<4>(raw), iset1(0x0f0f0f0f)); }

  // With the block's codes in registers, which are many where one vector holds the 16 rows of a tile.
  template <int C>
  static void accumulate_decoded(const uint8_t* codes, const uint8_t* scales, const Record<C>& x, F* acc) {
    const Scales s(scales, 0);
    I w[8][1];
    STET_UNROLL
    for (int g = 0; g < 4; ++g) {
      const I raw = iload(codes + g * 64);
      w[g][0] = low_codes(raw);
      w[4 + g][0] = high_codes(raw);
    }
    STET_UNROLL
    for (int c = 0; c < C; ++c) {
      NibbleDots<1, 1> dots;
      STET_UNROLL
      for (int g = 0; g < 8; ++g) dots.add(w[g], [&](int) { return x.q(c) + 4 * g; });
      s.add(x, c, dots.total(0, 0, bias(x, c)), acc[c]);
    }
  }

  // Rows kFirst .. of x, some at a time.
  template <int kFirst, int C>
  static void accumulate_from(const uint8_t* codes, const uint8_t* scales, const Record<C>& x, F* acc) {
    constexpr int kRows = C - kFirst < kDotRows ? C - kFirst : kDotRows;
    NibbleDots<kRows, kTileVectors> dots;
    STET_UNROLL
    for (int g = 0; g < 4; ++g) {
      I low[kTileVectors], high[kTileVectors];
      STET_UNROLL
      for (int h = 0; h < kTileVectors; ++h) {
        const I raw = iload(codes + g * 64 + h * kLanes * 4);
        low[h] = low_codes(raw);
        high[h] = high_codes(raw);
      }
      dots.add(low, [&](int c) { return x.q(kFirst + c) + 4 * g; });
      dots.add(high, [&](int c) { return x.q(kFirst + c) + 16 + 4 * g; });
    }
    STET_UNROLL
    for (int h = 0; h < kTileVectors; ++h) {
      const Scales s(scales, h);
      STET_UNROLL
      for (int c = kFirst; c < kFirst + kRows; ++c)
        s.add(x, c, dots.total(c - kFirst, h, bias(x, c)), acc[c * kTileVectors + h]);
    }
    if constexpr (kFirst + kRows < C) accumulate_from<kFirst + kRows>(codes, scales, x, acc);
  }

  template <int C>
  static I bias(const Record<C>& x, int c) {
    return kMinimum ? izero() : x.bias8(c);
  }
};

}  // namespace stet::STET_ISA
