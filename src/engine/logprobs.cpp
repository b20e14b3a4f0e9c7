#include "engine/logprobs.h"

#include <algorithm>
#include <numeric>

#include "base/dmath.h"

namespace stet {

PositionLogprobs position_logprobs(std::span<const float> logits, int32_t chosen, uint32_t top) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const float x : logits) sum += exp64(x - max);
  const double log_sum = log64(sum);
  const auto entry = [&](int32_t id) {
    return TokenLogprob{id, static_cast<float>((logits[static_cast<size_t>(id)] - max) - log_sum)};
  };
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto kept = ids.begin() + std::min<ptrdiff_t>(top, std::ssize(ids));
  std::partial_sort(ids.begin(), kept, ids.end(), [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  });
  PositionLogprobs out{entry(chosen), {}};
  std::transform(ids.begin(), kept, std::back_inserter(out.top), entry);
  return out;
}

}  // namespace stet
