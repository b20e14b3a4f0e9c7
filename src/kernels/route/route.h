// The router of a mixture of experts with scores sqrt(softplus(x)) (DeepSeek V4).
//
// softplus(x) = max(x, 0) + log1p(exp(-|x|)); log1p(e), 0 <= e <= 1: the log of docs/numerics.md section 5 with 1 + e =
// 2^k m taken
//   apart exactly: e < 53/128: k = 0, z = e / (2 + e); else k = 1, z = (e - 1) / (e + 3). score = sqrt of it, correctly
//   rounded.
// The chosen are the best `chosen` of score + bias, in that order, ties to the lowest index; or, where the layer has a
// table, those that it gives for the token, in its order. Their weights come from the scores without the bias:
//   w_i = (scale * s_i) / (sum + 1e-20), the sum in the order of the slots.
// Guarantee: exact. Limits: chosen <= kMaxChosen.
#pragma once

#include <cstdint>

namespace stet {

constexpr uint32_t kMaxChosen = 64;

struct RouteSpec {
  uint32_t experts = 0;
  uint32_t chosen = 0;
  float scale = 1.0f;
  const float* bias = nullptr;  // [experts]; null: a table chooses
};

// logits [experts]; ids [chosen]: those of the table, null where the bias chooses. out [2 * chosen]: ids as floats,
// then weights.
void route_ref(const RouteSpec& spec, const float* logits, const float* ids, float* out);

}  // namespace stet
