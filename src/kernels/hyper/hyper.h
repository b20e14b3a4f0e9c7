// Hyper-connections: m residual streams of `hidden` elements, mixed into a site's input and out of its output.
// Manifold-constrained as in DeepSeek V4 (inference/model.py of the published repository, hc_pre, hc_post, hc_head).
//
// gates: v = the m streams one behind the other; r = 1 / sqrt(mean(v^2) + norm_eps) in rmsnorm's order; mix = fn v, a
// product of
//   `outputs()` rows made before. With x_i = mix_i * r and l_i = x_i * scale + base_i (each operation rounded):
//     pre_j  = 1 / (1 + exp(0 - l_j)) + eps                      scale[0], base[j], j < m
//     post_j = 2 * (1 / (1 + exp(0 - l_{m+j})))                  scale[1], base[m + j]
//     comb   = Sinkhorn(l_{2m + mj + k}), row j, column k        scale[2], base[2m + mj + k]
//   Sinkhorn: row softmax (exp(l - max), sum in k order, division) + eps; every element / (its column's sum in j order
//   + eps); then iterations - 1 times / (row sum in k order + eps), / (column sum in j order + eps). The last site of a
//   model (mixes only) has pre alone.
// mix: y_d = sum over j of pre_j * h_jd, fma in j order from +0.
// post: h'_kd = post_k * o_d, then fma(comb_jk, h_jd, acc) in j order. The sum runs over the first index.
// Guarantee: exact. Limits: m <= kMaxStreams.
#pragma once

#include <cstdint>

#include "base/contract.h"

namespace stet {

constexpr uint32_t kMaxStreams = 8;

struct HyperSpec {
  uint32_t streams = 0;     // m
  uint32_t iterations = 0;  // of Sinkhorn; 0: pre only
  float norm_eps = 0.0f, eps = 0.0f;
  const float* base = nullptr;   // [outputs()]
  const float* scale = nullptr;  // [3], or [1] with pre only

  STET_BOTH uint32_t outputs() const { return iterations == 0 ? streams : streams * (2 + streams); }
};

// streams [m * hidden], mix [outputs()]; gates [outputs()]: pre, post, comb row by row.
void hyper_gates_ref(const HyperSpec& spec, const float* streams, uint32_t hidden, const float* mix, float* gates);
// gates: pre comes first. y [hidden].
void hyper_mix_ref(uint32_t m, const float* streams, uint32_t hidden, const float* gates, float* y);
// out [m * hidden] may be `streams`.
void hyper_post_ref(uint32_t m, const float* site, const float* streams, uint32_t hidden, const float* gates,
                    float* out);

}  // namespace stet
