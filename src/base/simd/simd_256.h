// The vector vocabulary of the kernels, 256 bits wide: AVX2, AVX-VNNI, or VNNI in its EVEX encoding (STET_VNNI says which).
// simd_512.h has the same names and their meanings.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "base/contract.h"

namespace stet::STET_ISA {

constexpr int kLanes = 8;
#ifdef STET_VNNI
constexpr bool kHasVnni = true;
#else
constexpr bool kHasVnni = false;
#endif
using F = __m256;
using I = __m256i;
using M = __m256;  // a lane's sign bit decides

static inline F zero() { return _mm256_setzero_ps(); }
static inline F set1(float x) { return _mm256_set1_ps(x); }
static inline F load(const float* p) { return _mm256_loadu_ps(p); }
static inline void store(float* p, F x) { _mm256_storeu_ps(p, x); }
static inline F add(F a, F b) { return _mm256_add_ps(a, b); }
static inline F sub(F a, F b) { return _mm256_sub_ps(a, b); }
static inline F mul(F a, F b) { return _mm256_mul_ps(a, b); }
static inline F div(F a, F b) { return _mm256_div_ps(a, b); }
static inline F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
static inline F max_keep(F a, F b) { return _mm256_max_ps(a, b); }
static inline F min_keep(F a, F b) { return _mm256_min_ps(a, b); }
static inline F select(M m, F yes, F no) { return _mm256_blendv_ps(no, yes, m); }
static inline M first_lanes(int n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane));
}

// Comparisons are false where a value is NaN.
static inline M greater(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
static inline M at_least(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_GE_OQ); }
static inline M equal(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
static inline uint32_t lane_bits(M m) { return static_cast<uint32_t>(_mm256_movemask_ps(m)); }  // bit i: lane i

static inline F swap_pairs(F a) { return _mm256_permute_ps(a, 0xb1); }  // lanes 2i and 2i + 1 change places

static inline I izero() { return _mm256_setzero_si256(); }
static inline I iset1(int32_t x) { return _mm256_set1_epi32(x); }
static inline I iload(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
// Says that x is not worth loading again: the load ports are what a product of several rows would wait for.
static inline void keep_in_register(I& x) { asm("" : "+x"(x)); }
static inline void istore(void* p, I x) { _mm256_storeu_si256(static_cast<__m256i*>(p), x); }
static inline I iadd(I a, I b) { return _mm256_add_epi32(a, b); }
static inline I isub(I a, I b) { return _mm256_sub_epi32(a, b); }
static inline I imul(I a, I b) { return _mm256_mullo_epi32(a, b); }
static inline I imax(I a, I b) { return _mm256_max_epi32(a, b); }
static inline I imin(I a, I b) { return _mm256_min_epi32(a, b); }
static inline int32_t sum_lanes(I a) {
  __m128i m = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  m = _mm_add_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_add_epi32(m, _mm_shuffle_epi32(m, 0xb1));
  return _mm_cvtsi128_si32(m);
}
static inline int32_t max_lane(I a) {
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
  return _mm_cvtsi128_si32(m);
}
static inline I iand(I a, I b) { return _mm256_and_si256(a, b); }
static inline I ior(I a, I b) { return _mm256_or_si256(a, b); }
template <int n>
static inline I shl(I a) { return _mm256_slli_epi32(a, n); }
template <int n>
static inline I shr(I a) { return _mm256_srli_epi32(a, n); }
template <int n>
static inline I sar(I a) { return _mm256_srai_epi32(a, n); }
static inline I shr_by(I a, int n) { return _mm256_srli_epi32(a, n); }
static inline I ixor(I a, I b) { return _mm256_xor_si256(a, b); }
static inline F to_float(I a) { return _mm256_cvtepi32_ps(a); }
static inline I to_int(F a) { return _mm256_cvtps_epi32(a); }
static inline I as_int(F a) { return _mm256_castps_si256(a); }
static inline F as_float(I a) { return _mm256_castsi256_ps(a); }

static inline I truncate(F a) { return _mm256_cvttps_epi32(a); }  // towards zero; 0x80000000 for 2^31 and above
static inline I select(M m, I yes, I no) { return as_int(select(m, as_float(yes), as_float(no))); }
static inline M at_least_unsigned(I a, I b) { return as_float(_mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a)); }
// The 64-bit products of unsigned lanes, as their high and low halves.
static inline void multiply_wide(I a, I b, I& high, I& low) {
  const I even = _mm256_mul_epu32(a, b);
  const I odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
  high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
  low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}
// In each quarter of 4 lanes: lane i of x[j] becomes lane j of x[i].
static inline void transpose4(I x[4]) {
  const I a = _mm256_unpacklo_epi32(x[0], x[1]), b = _mm256_unpackhi_epi32(x[0], x[1]);
  const I c = _mm256_unpacklo_epi32(x[2], x[3]), d = _mm256_unpackhi_epi32(x[2], x[3]);
  x[0] = _mm256_unpacklo_epi64(a, c), x[1] = _mm256_unpackhi_epi64(a, c);
  x[2] = _mm256_unpacklo_epi64(b, d), x[3] = _mm256_unpackhi_epi64(b, d);
}
// 64-bit sums: every 64 bits of acc take the two unsigned lanes of a.
static inline I add_wide(I acc, I a) {
  return _mm256_add_epi64(acc, _mm256_add_epi64(_mm256_srli_epi64(a, 32), _mm256_blend_epi32(a, izero(), 0xaa)));
}
static inline uint64_t sum_wide(I acc) {
  uint64_t part[4];
  istore(part, acc);
  return (part[0] + part[1]) + (part[2] + part[3]);
}
struct CompressTable {
  uint8_t lane[256][8];
};
static constexpr CompressTable make_compress_table() {
  CompressTable t = {};
  for (uint32_t mask = 0; mask < 256; ++mask)
    for (uint32_t i = 0, n = 0; i < 8; ++i)
      if (mask >> i & 1u) t.lane[mask][n++] = static_cast<uint8_t>(i);
  return t;
}
static constexpr CompressTable kCompress = make_compress_table();
// The lanes of a whose bit is set, moved to the front in order; what follows them is unspecified.
static inline I compress(I a, uint32_t bits) {
  const __m128i lanes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kCompress.lane[bits]));
  return _mm256_permutevar8x32_epi32(a, _mm256_cvtepu8_epi32(lanes));
}

static inline F load_f16(const uint16_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
static inline void store_f16(uint16_t* p, F x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
static inline F load_bf16(const uint16_t* p) {
  return as_float(shl<16>(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))));
}
static inline I load_i8(const int8_t* p) { return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))); }
static inline I load_u8(const uint8_t* p) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
static inline void store_i8(int8_t* p, I x) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(x, x), 0x08);
  const __m128i low = _mm256_castsi256_si128(words);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(low, low));
}
// kLanes 16-bit words: lanes in [-32768, 32767], with lanes 4i + 1 and 4i + 2 in each other's place.
static inline void store_swapped_i16(int16_t* p, I x) {
  const __m256i swapped = _mm256_shuffle_epi32(x, 0xd8);
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(swapped, swapped), 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(words));
}
static inline I bytes4(const int8_t* p) {
  int32_t x;
  __builtin_memcpy(&x, p, 4);
  return _mm256_set1_epi32(x);
}

// Bytes: byte i of the result is byte (i of index) of a table of 16. REQUIRES: indices below 16.
static inline I table16(const uint8_t* p) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
static inline I lookup(I table, I index) { return _mm256_shuffle_epi8(table, index); }

// 16-bit lanes, two to each of I: the names begin with w.
template <int n>
static inline I wshl(I a) {
  return _mm256_slli_epi16(a, n);
}
template <int n>
static inline I wshr(I a) {
  return _mm256_srli_epi16(a, n);
}
template <int n>
static inline I wsar(I a) {
  return _mm256_srai_epi16(a, n);
}
static inline I wsub(I a, I b) { return _mm256_sub_epi16(a, b); }
static inline I wmul(I a, I b) { return _mm256_mullo_epi16(a, b); }       // the low halves of the products
static inline I wmul_high(I a, I b) { return _mm256_mulhi_epu16(a, b); }  // the high halves, unsigned
// Adds to each lane of 32 bits the dot product of its two signed lanes of 16 bits.
#if defined(STET_VNNI) && STET_VNNI == 1
static inline I dot2(I acc, I a, I b) { return _mm256_dpwssd_avx_epi32(acc, a, b); }
static inline I dot4(I acc, I u, I s) { return _mm256_dpbusd_avx_epi32(acc, u, s); }
#elif defined(STET_VNNI)
static inline I dot2(I acc, I a, I b) { return _mm256_dpwssd_epi32(acc, a, b); }
static inline I dot4(I acc, I u, I s) { return _mm256_dpbusd_epi32(acc, u, s); }
#else
static inline I dot2(I acc, I a, I b) { return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b)); }
// maddubs saturates its i16 pair sums, so u must stay below 129 here: |s| <= 127 gives at most 2 * 128 * 127 = 32512.
static inline I dot4(I acc, I u, I s) {
  return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(u, s), _mm256_set1_epi16(1)));
}
#endif

}  // namespace stet::STET_ISA
