#include "kernels/common/norm_ref.h"
#include "kernels/heads/heads.h"

namespace stet {

void unit_head_ref(const float* x, uint32_t dim, float eps, float* y) {
  const float r = inverse_rms_ref(x, dim, eps);
  for (uint32_t d = 0; d < dim; ++d) y[d] = x[d] * r;
}

void unit_head_bf16_ref(const float* x, uint32_t dim, float eps, float* y) {
  float lanes[256] = {};
  for (uint32_t d = 0; d < dim; ++d) lanes[d % 256] = lanes[d % 256] + rounded_bf16(x[d] * x[d]);
  const float mean = rounded_bf16(fold_lanes_ref(lanes) / static_cast<float>(dim));
  const float r = rounded_bf16(1.0f / sqrt_ref(rounded_bf16(mean + eps)));
  for (uint32_t d = 0; d < dim; ++d) y[d] = rounded_bf16(x[d] * r);
}

void rotate_tail_ref(float* x, uint32_t dim, RopeRow row, uint32_t rope_dim, bool inverse) {
  float* tail = x + dim - rope_dim;
  for (uint32_t d = 0; d < rope_dim; d += 2) {
    const float x0 = tail[d], x1 = tail[d + 1];
    const float s0 = inverse ? -row.sin[d] : row.sin[d], s1 = inverse ? -row.sin[d + 1] : row.sin[d + 1];
    tail[d] = x0 * row.cos[d] + x1 * s0;
    tail[d + 1] = x1 * row.cos[d + 1] + x0 * s1;
  }
}

}  // namespace stet
