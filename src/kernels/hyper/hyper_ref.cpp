#include <algorithm>

#include "kernels/common/math_ref.h"
#include "kernels/common/norm_ref.h"
#include "kernels/hyper/hyper.h"

namespace stet {
namespace {

float sigmoid_ref(float x) { return 1.0f / (1.0f + exp_ref(0.0f - x)); }

// c [m][m], divided by the sums of its rows or of its columns, each plus eps.
void divide_rows(float* c, uint32_t m, float eps) {
  for (uint32_t j = 0; j < m; ++j) {
    float sum = c[j * m];
    for (uint32_t k = 1; k < m; ++k) sum = sum + c[j * m + k];
    for (uint32_t k = 0; k < m; ++k) c[j * m + k] = c[j * m + k] / (sum + eps);
  }
}

void divide_columns(float* c, uint32_t m, float eps) {
  for (uint32_t k = 0; k < m; ++k) {
    float sum = c[k];
    for (uint32_t j = 1; j < m; ++j) sum = sum + c[j * m + k];
    for (uint32_t j = 0; j < m; ++j) c[j * m + k] = c[j * m + k] / (sum + eps);
  }
}

void sinkhorn(float* c, uint32_t m, uint32_t iterations, float eps) {
  for (uint32_t j = 0; j < m; ++j) {
    float* row = c + j * m;
    float max = row[0];
    for (uint32_t k = 1; k < m; ++k) max = std::max(max, row[k]);
    for (uint32_t k = 0; k < m; ++k) row[k] = exp_ref(row[k] - max);
  }
  divide_rows(c, m, 0.0f);
  for (uint32_t i = 0; i < m * m; ++i) c[i] = c[i] + eps;
  divide_columns(c, m, eps);
  for (uint32_t i = 1; i < iterations; ++i) {
    divide_rows(c, m, eps);
    divide_columns(c, m, eps);
  }
}

}  // namespace

void hyper_gates_ref(const HyperSpec& spec, const float* streams, uint32_t hidden, const float* mix, float* gates) {
  const uint32_t m = spec.streams;
  const float r = inverse_rms_ref(streams, m * hidden, spec.norm_eps);
  const auto logit = [&](uint32_t i, float scale) { return (mix[i] * r) * scale + spec.base[i]; };
  for (uint32_t j = 0; j < m; ++j) gates[j] = sigmoid_ref(logit(j, spec.scale[0])) + spec.eps;
  if (spec.iterations == 0) return;
  for (uint32_t j = m; j < 2 * m; ++j) gates[j] = 2.0f * sigmoid_ref(logit(j, spec.scale[1]));
  for (uint32_t i = 2 * m; i < spec.outputs(); ++i) gates[i] = logit(i, spec.scale[2]);
  sinkhorn(gates + 2 * m, m, spec.iterations, spec.eps);
}

void hyper_mix_ref(uint32_t m, const float* streams, uint32_t hidden, const float* gates, float* y) {
  for (uint32_t d = 0; d < hidden; ++d) {
    float acc = 0.0f;
    for (uint32_t j = 0; j < m; ++j) acc = fma32(gates[j], streams[j * hidden + d], acc);
    y[d] = acc;
  }
}

void hyper_post_ref(uint32_t m, const float* site, const float* streams, uint32_t hidden, const float* gates,
                    float* out) {
  const float *post = gates + m, *comb = gates + 2 * m;
  for (uint32_t d = 0; d < hidden; ++d) {
    float acc[kMaxStreams];
    for (uint32_t k = 0; k < m; ++k) {
      acc[k] = post[k] * site[d];
      for (uint32_t j = 0; j < m; ++j) acc[k] = fma32(comb[j * m + k], streams[j * hidden + d], acc[k]);
    }
    for (uint32_t k = 0; k < m; ++k) out[k * hidden + d] = acc[k];
  }
}

}  // namespace stet
