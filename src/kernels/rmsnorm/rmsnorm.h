// rmsnorm: y[k] = (x[k] * r) * w[k], r = 1 / sqrt(mean + eps), mean = sum / K.
// The sum of squares runs in 256 lanes (k mod 256), fma in k order; the lanes are added in halves (i and i + 128, then i + 64, ...).
// sqrt and both divisions correctly rounded. Guarantee: exact.
#pragma once

#include <cstdint>

namespace stet {

// x, w, y: K floats; y may be x.
using RmsnormFn = void (*)(const float* x, const float* w, float eps, uint32_t k, float* y);

void rmsnorm_ref(const float* x, const float* w, float eps, uint32_t k, float* y);

}  // namespace stet
