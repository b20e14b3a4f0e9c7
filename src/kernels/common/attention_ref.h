// What the scalar references of attentions share: docs/numerics.md section 6.2. A part has m, l and o.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/fp.h"
#include "kernels/common/math_ref.h"

namespace stet {

// q times a key: eight partial sums (d mod 8), fma in d order, and their tree. key(d) is its element.
template <typename Key>
float dot8_ref(const float* q, uint32_t n, Key key) {
  float p[8] = {};
  for (uint32_t d = 0; d < n; ++d) p[d % 8] = fma32(q[d], key(d), p[d % 8]);
  return ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
}

// Softmax of n >= 1 scores, not yet divided, and the values weighed by it. value(j, d) is an element of value j.
template <typename Part, typename Value>
void weigh_values_ref(const float* s, uint32_t n, uint32_t dim, Value value, Part& part) {
  part.m = s[0];
  for (uint32_t j = 1; j < n; ++j) part.m = std::max(part.m, s[j]);
  float lanes[16] = {};
  std::fill_n(part.o, dim, 0.0f);
  for (uint32_t j = 0; j < n; ++j) {
    const float p = exp_ref(s[j] - part.m);
    lanes[j % 16] = lanes[j % 16] + p;
    for (uint32_t d = 0; d < dim; ++d) part.o[d] = fma32(p, value(j, d), part.o[d]);
  }
  part.l = fold16_ref(lanes);
}

template <typename Part>
void join_parts_ref(const Part& a, const Part& b, uint32_t dim, Part& out) {
  const float m = std::max(a.m, b.m);
  const float wa = exp_ref(a.m - m), wb = exp_ref(b.m - m);
  out.m = m;
  out.l = a.l * wa + b.l * wb;
  for (uint32_t d = 0; d < dim; ++d) out.o[d] = a.o[d] * wa + b.o[d] * wb;
}

}  // namespace stet
