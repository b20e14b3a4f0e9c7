// scale: y[k] = x[k] * w[k], rounded. Guarantee: exact.
#pragma once

#include <cstdint>

namespace stet {

// x, w, y: K floats; y may be x.
using ScaleFn = void (*)(const float* x, const float* w, uint32_t k, float* y);

void scale_ref(const float* x, const float* w, uint32_t k, float* y);

}  // namespace stet
