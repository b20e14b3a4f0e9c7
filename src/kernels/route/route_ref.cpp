#include <algorithm>
#include <vector>

#include "kernels/common/best_ref.h"
#include "kernels/common/math_ref.h"
#include "kernels/common/norm_ref.h"
#include "kernels/route/route.h"

namespace stet {
namespace {

float softplus_ref(float x) {
  const float e = exp_ref(x < 0.0f ? x : 0.0f - x);
  const float log1p = e < 53.0f / 128.0f ? log_ratio_ref(0.0f, e, 2.0f + e) : log_ratio_ref(1.0f, e - 1.0f, e + 3.0f);
  return (x < 0.0f ? 0.0f : x) + log1p;
}

float route_score(float logit) { return sqrt_ref(softplus_ref(logit)); }

}  // namespace

void route_ref(const RouteSpec& spec, const float* logits, const float* ids, float* out) {
  const uint32_t n = spec.chosen;
  if (ids != nullptr) {
    std::copy_n(ids, n, out);
  } else {
    thread_local std::vector<uint64_t> keys;
    keys.resize(spec.experts);
    for (uint32_t i = 0; i < spec.experts; ++i) keys[i] = best_key(route_score(logits[i]) + spec.bias[i], i);
    best_first(keys, n);
    for (uint32_t i = 0; i < n; ++i) out[i] = static_cast<float>(index_of_key(keys[i]));
  }
  float sum = 0.0f, score[kMaxChosen];
  for (uint32_t i = 0; i < n; ++i) sum = sum + (score[i] = route_score(logits[static_cast<uint32_t>(out[i])]));
  for (uint32_t i = 0; i < n; ++i) out[n + i] = (spec.scale * score[i]) / (sum + 1e-20f);
}

}  // namespace stet
