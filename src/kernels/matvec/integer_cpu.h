// Integer formats for one instruction set: dot products of a block of 16 rows against C activation rows. Included only by
// src/kernels/isa, after the vector vocabulary. The tile layouts are those of each format's *_pack.cpp.
#pragma once

#include "kernels/common/activations.h"

namespace stet::STET_ISA {

constexpr int kTileVectors = 16 / kLanes;

// The fields of an i8 activation record of C rows, at offsets the compiler knows.
template <int C>
struct Record {
  const uint8_t* p;
  const int8_t* q(int c) const { return reinterpret_cast<const int8_t*>(p) + c * 32; }
  F d(int c) const { return set1(field<float>(0)[c]); }
  F sum(int c) const { return set1(field<float>(1)[c]); }
  I bias8(int c) const { return iset1(field<int32_t>(2)[c]); }
  I bias128(int c) const { return iset1(field<int32_t>(3)[c]); }
  I bias32_low(int c) const { return iset1(field<int32_t>(4)[c]); }
  I bias32_high(int c) const { return iset1(field<int32_t>(5)[c]); }

 private:
  template <typename T>
  const T* field(int i) const {
    return reinterpret_cast<const T*>(p + C * 32) + i * C;
  }
};

// Q4_0 and Q4_1.
template <bool kMinimum>
struct WeightsQ4 {
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
        if constexpr (kMinimum) a = fma(mul(mw, dx), x.sum(c), a);
      }
    }
  }
};

struct WeightsQ8 {
  static constexpr uint32_t kCodes = 512, kScales = 32, kAhead = 0;

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

struct WeightsQ6K {
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
