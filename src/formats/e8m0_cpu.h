// What formats with E8M0 scales share, for one instruction set. Included by their *_cpu.h.
#pragma once

namespace stet::STET_ISA {

// The scales of kLanes rows, times `fold`, a power of two: exact. 255 gives NaN (infinity - infinity); 0 is 2^-127.
static inline F e8m0_scales(const uint8_t* p, float fold) {
  const F scale = as_float(imax(shl<23>(load_u8(p)), iset1(0x00400000)));
  return fma(scale, set1(fold), sub(scale, scale));
}

// The signed 16-bit values of 4 signed bytes a lane: bytes 0 and 2, bytes 1 and 3.
static inline I even_bytes(I a) { return wsar<8>(wshl<8>(a)); }
static inline I odd_bytes(I a) { return wsar<8>(a); }

}  // namespace stet::STET_ISA
