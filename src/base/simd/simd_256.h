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

static inline F swap_pairs(F a) { return _mm256_permute_ps(a, 0xb1); }  // lanes 2i and 2i + 1 change places

static inline I izero() { return _mm256_setzero_si256(); }
static inline I iset1(int32_t x) { return _mm256_set1_epi32(x); }
static inline I iload(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
static inline void istore(void* p, I x) { _mm256_storeu_si256(static_cast<__m256i*>(p), x); }
static inline I iadd(I a, I b) { return _mm256_add_epi32(a, b); }
static inline I isub(I a, I b) { return _mm256_sub_epi32(a, b); }
static inline I imul(I a, I b) { return _mm256_mullo_epi32(a, b); }
static inline I imax(I a, I b) { return _mm256_max_epi32(a, b); }
static inline I imin(I a, I b) { return _mm256_min_epi32(a, b); }
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

static inline F load_f16(const uint16_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
static inline void store_f16(uint16_t* p, F x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
static inline F load_bf16(const uint16_t* p) {
  return as_float(shl<16>(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))));
}
static inline I load_i8(const int8_t* p) { return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))); }
static inline void store_i8(int8_t* p, I x) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(x, x), 0x08);
  const __m128i low = _mm256_castsi256_si128(words);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(low, low));
}
static inline I bytes4(const int8_t* p) {
  int32_t x;
  __builtin_memcpy(&x, p, 4);
  return _mm256_set1_epi32(x);
}

#if defined(STET_VNNI) && STET_VNNI == 1
static inline I dot4(I acc, I u, I s) { return _mm256_dpbusd_avx_epi32(acc, u, s); }
#elif defined(STET_VNNI)
static inline I dot4(I acc, I u, I s) { return _mm256_dpbusd_epi32(acc, u, s); }
#else
// maddubs saturates its i16 pair sums, so u must stay below 129 here: |s| <= 127 gives at most 2 * 128 * 127 = 32512.
static inline I dot4(I acc, I u, I s) {
  return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(u, s), _mm256_set1_epi16(1)));
}
#endif

}  // namespace stet::STET_ISA
