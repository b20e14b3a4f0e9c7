// The vector vocabulary of the kernels, 512 bits wide. Included only by files compiled for AVX-512 with VNNI; the namespace keeps
// each instruction set's copy of a kernel apart. simd_256.h has the same names.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "base/contract.h"

namespace stet::STET_ISA {

constexpr int kLanes = 16;
constexpr bool kHasVnni = true;
using F = __m512;   // kLanes f32
using I = __m512i;  // kLanes i32, or 64 bytes
using M = __mmask16;

static inline F zero() { return _mm512_setzero_ps(); }
static inline F set1(float x) { return _mm512_set1_ps(x); }
static inline F load(const float* p) { return _mm512_loadu_ps(p); }
static inline void store(float* p, F x) { _mm512_storeu_ps(p, x); }
static inline F add(F a, F b) { return _mm512_add_ps(a, b); }
static inline F sub(F a, F b) { return _mm512_sub_ps(a, b); }
static inline F mul(F a, F b) { return _mm512_mul_ps(a, b); }
static inline F div(F a, F b) { return _mm512_div_ps(a, b); }
static inline F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
// a > b ? a : b, so that a NaN in b passes through.
static inline F max_keep(F a, F b) { return _mm512_max_ps(a, b); }
static inline F min_keep(F a, F b) { return _mm512_min_ps(a, b); }
static inline F select(M m, F yes, F no) { return _mm512_mask_blend_ps(m, no, yes); }
static inline M first_lanes(int n) { return n >= kLanes ? M(0xffff) : n <= 0 ? M(0) : M((1u << n) - 1u); }

// Comparisons are false where a value is NaN.
static inline M greater(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
static inline M at_least(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
static inline M equal(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
static inline uint32_t lane_bits(M m) { return m; }  // bit i: lane i

static inline F swap_pairs(F a) { return _mm512_permute_ps(a, 0xb1); }  // lanes 2i and 2i + 1 change places

static inline I izero() { return _mm512_setzero_si512(); }
static inline I iset1(int32_t x) { return _mm512_set1_epi32(x); }
static inline I iload(const void* p) { return _mm512_loadu_si512(p); }
// Says that x is not worth loading again: the load ports are what a product of several rows would wait for.
static inline void keep_in_register(I& x) { asm("" : "+v"(x)); }
static inline void istore(void* p, I x) { _mm512_storeu_si512(p, x); }
static inline I iadd(I a, I b) { return _mm512_add_epi32(a, b); }
static inline I isub(I a, I b) { return _mm512_sub_epi32(a, b); }
static inline I imul(I a, I b) { return _mm512_mullo_epi32(a, b); }
static inline I imax(I a, I b) { return _mm512_max_epi32(a, b); }
static inline I imin(I a, I b) { return _mm512_min_epi32(a, b); }
static inline int32_t sum_lanes(I a) { return _mm512_reduce_add_epi32(a); }
static inline int32_t max_lane(I a) { return _mm512_reduce_max_epi32(a); }
static inline I iand(I a, I b) { return _mm512_and_si512(a, b); }
static inline I ior(I a, I b) { return _mm512_or_si512(a, b); }
template <int n>
static inline I shl(I a) { return _mm512_slli_epi32(a, n); }
template <int n>
static inline I shr(I a) { return _mm512_srli_epi32(a, n); }
template <int n>
static inline I sar(I a) { return _mm512_srai_epi32(a, n); }
static inline I shr_by(I a, int n) { return _mm512_srli_epi32(a, static_cast<unsigned>(n)); }
static inline I ixor(I a, I b) { return _mm512_xor_si512(a, b); }
static inline F to_float(I a) { return _mm512_cvtepi32_ps(a); }
static inline I to_int(F a) { return _mm512_cvtps_epi32(a); }  // round to nearest even
static inline I as_int(F a) { return _mm512_castps_si512(a); }
static inline F as_float(I a) { return _mm512_castsi512_ps(a); }

static inline I truncate(F a) { return _mm512_cvttps_epi32(a); }  // towards zero; 0x80000000 for 2^31 and above
static inline I select(M m, I yes, I no) { return _mm512_mask_blend_epi32(m, no, yes); }
static inline M at_least_unsigned(I a, I b) { return _mm512_cmpge_epu32_mask(a, b); }
// The 64-bit products of unsigned lanes, as their high and low halves.
static inline void multiply_wide(I a, I b, I& high, I& low) {
  const I even = _mm512_mul_epu32(a, b);
  const I odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
  high = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
  low = _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}
// In each quarter of 4 lanes: lane i of x[j] becomes lane j of x[i].
static inline void transpose4(I x[4]) {
  const I a = _mm512_unpacklo_epi32(x[0], x[1]), b = _mm512_unpackhi_epi32(x[0], x[1]);
  const I c = _mm512_unpacklo_epi32(x[2], x[3]), d = _mm512_unpackhi_epi32(x[2], x[3]);
  x[0] = _mm512_unpacklo_epi64(a, c), x[1] = _mm512_unpackhi_epi64(a, c);
  x[2] = _mm512_unpacklo_epi64(b, d), x[3] = _mm512_unpackhi_epi64(b, d);
}
// 64-bit sums: every 64 bits of acc take the two unsigned lanes of a.
static inline I add_wide(I acc, I a) {
  return _mm512_add_epi64(acc, _mm512_add_epi64(_mm512_srli_epi64(a, 32), _mm512_maskz_mov_epi32(0x5555, a)));
}
static inline uint64_t sum_wide(I acc) { return static_cast<uint64_t>(_mm512_reduce_add_epi64(acc)); }
// The lanes of a whose bit is set, moved to the front in order; what follows them is unspecified.
static inline I compress(I a, uint32_t bits) { return _mm512_maskz_compress_epi32(static_cast<M>(bits), a); }

static inline F load_f16(const uint16_t* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
static inline void store_f16(uint16_t* p, F x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
static inline F load_bf16(const uint16_t* p) {
  return as_float(shl<16>(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))));
}
// kLanes signed bytes widened to i32.
static inline I load_i8(const int8_t* p) { return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
// kLanes unsigned bytes widened to i32.
static inline I load_u8(const uint8_t* p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
// Lanes in [-128, 127] narrowed to signed bytes.
static inline void store_i8(int8_t* p, I x) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x)); }
// kLanes 16-bit words: lanes in [-32768, 32767], with lanes 4i + 1 and 4i + 2 in each other's place.
static inline void store_swapped_i16(int16_t* p, I x) {
  const __m512i swapped = _mm512_shuffle_epi32(x, _MM_PERM_ENUM(0xd8));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(swapped));
}
// Four bytes, in every lane.
static inline I bytes4(const int8_t* p) {
  int32_t x;
  __builtin_memcpy(&x, p, 4);
  return _mm512_set1_epi32(x);
}
// Adds to each lane the dot product of its four unsigned bytes of u and four signed bytes of s. Exact.
static inline I dot4(I acc, I u, I s) { return _mm512_dpbusd_epi32(acc, u, s); }

// Bytes: byte i of the result is byte (i of index) of a table of 16. REQUIRES: indices below 16.
static inline I table16(const uint8_t* p) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
static inline I lookup(I table, I index) { return _mm512_shuffle_epi8(table, index); }

// 16-bit lanes, two to each of I: the names begin with w.
template <int n>
static inline I wshl(I a) {
  return _mm512_slli_epi16(a, n);
}
template <int n>
static inline I wshr(I a) {
  return _mm512_srli_epi16(a, n);
}
template <int n>
static inline I wsar(I a) {
  return _mm512_srai_epi16(a, n);
}
static inline I wsub(I a, I b) { return _mm512_sub_epi16(a, b); }
static inline I wmul(I a, I b) { return _mm512_mullo_epi16(a, b); }       // the low halves of the products
static inline I wmul_high(I a, I b) { return _mm512_mulhi_epu16(a, b); }  // the high halves, unsigned
// Adds to each lane of 32 bits the dot product of its two signed lanes of 16 bits.
static inline I dot2(I acc, I a, I b) { return _mm512_dpwssd_epi32(acc, a, b); }

}  // namespace stet::STET_ISA
