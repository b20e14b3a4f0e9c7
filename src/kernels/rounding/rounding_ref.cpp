#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "formats/e4m3/e4m3.h"
#include "formats/mxfp4/mxfp4.h"
#include "kernels/quantize/quantize.h"
#include "kernels/rounding/rounding.h"

namespace stet {
namespace {

// The largest magnitude of n elements; infinity where one is not finite.
float largest(const float* x, uint32_t n) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < n; ++i) most = std::max(most, bits_of_float(x[i]) & 0x7fffffffu);
  return most >= 0x7f800000u ? std::numeric_limits<float>::infinity() : float_of_bits(most);
}

float to_e4m3(float v) { return e4m3_to_f32(f32_to_e4m3(v)); }

// |v| <= 6
float to_e2m1(float v) {
  const uint32_t bits = bits_of_float(v), size = bits & 0x7fffffffu;
  if (size < bits_of_float(1.0f)) return rint32(v * 2.0f) / 2.0f;
  return float_of_bits((bits + 0x1fffffu + ((bits >> 22) & 1u)) & ~0x3fffffu);
}

// One group with the scale 2^k.
template <typename Round>
void round_group(const float* x, uint32_t n, int k, Round round, float* y) {
  // Both powers are normal: |k| <= 126. What x / s loses below the normal numbers rounds to 0 all the same.
  const float scale = power_of_two(k), inverse = power_of_two(-k);
  for (uint32_t i = 0; i < n; ++i) y[i] = round(x[i] * inverse) * scale;
}

template <typename Group>
void by_group(const float* x, uint32_t n, uint32_t size, float* y, Group group) {
  for (uint32_t i = 0; i < n; i += size) {
    const uint32_t here = std::min(size, n - i);
    const float most = largest(x + i, here);
    if (most > std::numeric_limits<float>::max()) {
      std::fill_n(y + i, here, std::numeric_limits<float>::quiet_NaN());
    } else {
      group(x + i, here, most, y + i);
    }
  }
}

}  // namespace

void round_e4m3_ref(const float* x, uint32_t n, uint32_t size, float* y) {
  by_group(x, n, size, y, [](const float* in, uint32_t count, float most, float* out) {
    round_group(in, count, exponent_above(std::max(most, kPlaneFloor), kLargestE4M3), to_e4m3, out);
  });
}

void round_e2m1_ref(const float* x, uint32_t n, float* y) {
  by_group(x, n, kIndexGroup, y, [](const float* in, uint32_t count, float most, float* out) {
    round_group(in, count, exponent_above(std::max(most, kLargestE2M1 * 0x1p-126f), kLargestE2M1), to_e2m1, out);
  });
}

void hadamard_ref(float* x, uint32_t n) {
  STET_CHECK(std::has_single_bit(n));
  for (uint32_t half = 1; half < n; half *= 2)
    for (uint32_t i = 0; i < n; ++i)
      if ((i & half) == 0) {
        const float a = x[i], b = x[i + half];
        x[i] = a + b;
        x[i + half] = a - b;
      }
  // n = 4^q or 2 * 4^q
  const uint32_t log2 = static_cast<uint32_t>(std::countr_zero(n));
  const float scale = power_of_two(-static_cast<int>(log2 / 2)) * (log2 % 2 == 0 ? 1.0f : 0.70710678118654752f);
  for (uint32_t i = 0; i < n; ++i) x[i] = x[i] * scale;
}

void round_cached(float* x, uint32_t n, uint32_t rope_dim) {
  round_e4m3_ref(x, n - rope_dim, kCacheGroup, x);
  round_bf16(x + n - rope_dim, rope_dim);
}

void round_indexed(float* x, uint32_t n) {
  round_bf16(x, n);
  hadamard_ref(x, n);
  round_bf16(x, n);
  round_e2m1_ref(x, n, x);
}

}  // namespace stet
