// What a format's <id>_cpu.h is written with (formats/formats.def): how one instruction set multiplies packed weights. Included only
// by src/kernels/isa, after the vector vocabulary. The tile layouts are those of each format's *_pack.cpp.
#pragma once

#include "formats/format.h"
#include "kernels/common/activations.h"

namespace stet::STET_ISA {

constexpr int kTileVectors = 16 / kLanes;  // vectors that make the 16 rows of a tile

// Each format specialises this. An integer format has
//   kCodes, kScales    bytes of a block of 16 rows
//   kAhead             bytes that reading runs ahead of use for one row of x
//   accumulate<C>(codes, scales, record, acc)   adds the block's terms of C activation rows: acc[row * kTileVectors + vector]
// one that e4m3 activations multiply also
//   kPlanes            true
//   accumulate_planes<C>(codes, scales, record, acc)   the same of their records
// and a float format
//   kBytes             of an element
//   decode(p)          kLanes elements
template <Format>
struct CpuWeights;

// The fields of an i8 activation record of C rows, at offsets the compiler knows.
template <int C>
struct Record {
  const uint8_t* p;
  const int8_t* q(int c) const { return reinterpret_cast<const int8_t*>(p) + c * 32; }
  F d(int c) const { return set1(field<float>(0)[c]); }
  F scaled_sum(int c) const { return set1(field<float>(1)[c]); }
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

// The same of an e4m3 record. g = 0..7: elements 4g .. 4g + 3, in every lane of 32 bits; i = 0: 0 and 2 of them, 1: 1
// and 3.
template <int C>
struct Planes {
  const uint8_t* p;
  I high(int c, int g, int i) const { return pair(c, 0, g, i); }
  I low(int c, int g, int i) const { return pair(c, 32, g, i); }
  F d(int c) const { return set1(reinterpret_cast<const float*>(p + C * 128)[c]); }

 private:
  I pair(int c, int plane, int g, int i) const {
    return bytes4(reinterpret_cast<const int8_t*>(p + 2 * (c * 64 + plane + 4 * g + 2 * i)));
  }
};

}  // namespace stet::STET_ISA
