// Gumbel noise, scalar: the reference of gumbel_cpu.h.
#pragma once

#include "base/philox.h"
#include "kernels/common/math_ref.h"
#include "kernels/sample/sample.h"

namespace stet {

// (r + 1/2) / 2^32 with one rounding: both halves of r, and the half added to the lower one, are exact.
static inline float unit_ref(uint32_t r) {
  const float high = static_cast<float>(r >> 16) * 65536.0f;
  const float low = static_cast<float>(r & 0xffffu) + 0.5f;
  return (high + low) * 0x1p-32f;
}

// E = -log(u). Close to 1, u has lost the digits that matter, and w = 1 - u still has them: (u - 1) / (u + 1) = -w / (2
// - w).
static inline float exponential_ref(uint32_t r) {
  const float u = unit_ref(r);
  if (u >= kSqrtHalf) {
    const float w = unit_ref(~r);
    return 0.0f - log_ratio_ref(0.0f, 0.0f - w, 2.0f - w);
  }
  return 0.0f - log_ref(u);
}

static inline float gumbel_of_word_ref(uint32_t r) { return 0.0f - log_ref(exponential_ref(r)); }

static inline uint32_t gumbel_word_ref(NoiseStream stream, uint32_t id) {
  const Philox counter = {
      {static_cast<uint32_t>(stream.position), static_cast<uint32_t>(stream.position >> 32), id / 4, kGumbelStream}};
  return philox4x32(counter, static_cast<uint32_t>(stream.seed), static_cast<uint32_t>(stream.seed >> 32)).word[id % 4];
}

static inline float gumbel_ref(NoiseStream stream, uint32_t id) {
  return gumbel_of_word_ref(gumbel_word_ref(stream, id));
}

// x of sample.h.
static inline float tempered_ref(float logit, float max, float temperature) { return (logit - max) / temperature; }

}  // namespace stet
