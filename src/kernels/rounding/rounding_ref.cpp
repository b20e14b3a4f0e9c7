#include <algorithm>
#include <bit>

#include "base/error.h"
#include "kernels/rounding/round_value.h"
#include "kernels/rounding/rounding.h"

namespace stet {
namespace {

// Groups of `size`, each with its scale. A group that holds what is not finite has the scale NaN.
template <typename Scale, typename Round>
void by_group(const float* x, uint32_t n, uint32_t size, float* y, Scale scale_of, Round round) {
  for (uint32_t i = 0; i < n; i += size) {
    const uint32_t end = std::min(n, i + size);
    const BlockScale scale = scale_of(largest_bits(x + i, end - i));
    // What x / s loses below the normal numbers rounds to 0 all the same.
    for (uint32_t j = i; j < end; ++j) y[j] = round(x[j] * scale.inverse) * scale.d;
  }
}

}  // namespace

void round_e4m3_ref(const float* x, uint32_t n, uint32_t size, float* y) {
  by_group(x, n, size, y, plane_scale, to_e4m3);
}

void round_e2m1_ref(const float* x, uint32_t n, float* y) {
  by_group(x, n, kIndexGroup, y, index_scale, to_e2m1);
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
