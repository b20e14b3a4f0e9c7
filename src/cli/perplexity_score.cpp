#include "cli/perplexity_score.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace stet {

Windows cut_windows(uint64_t text_tokens, uint32_t length, std::optional<int32_t> first_token) {
  if (text_tokens < 2ull * length)
    fail(Code::kUsage,
         "the text has {} tokens; at least two windows of {} are needed: a longer text, or a smaller --ctx",
         text_tokens, length);
  return {length, static_cast<uint32_t>(text_tokens / length), text_tokens, first_token};
}

std::vector<int32_t> window_ids(std::span<const int32_t> text, const Windows& windows, uint32_t i) {
  const auto part = text.subspan(size_t{i} * windows.length, windows.length);
  std::vector<int32_t> ids(part.begin(), part.end());
  if (windows.first_token) ids[0] = *windows.first_token;
  return ids;
}

double Mean::standard_error() const {
  if (count_ < 2) return 0.0;
  const double variance = squares_ / static_cast<double>(count_) - mean() * mean();
  return variance > 0.0 ? std::sqrt(variance / static_cast<double>(count_ - 1)) : 0.0;
}

Normalizer normalizer(std::span<const float> logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const float x : logits) sum += std::exp(x - max);
  return {max, std::log(sum)};
}

double negative_log_likelihood(std::span<const float> logits, int32_t token) {
  return -normalizer(logits).log_probability(logits[static_cast<size_t>(token)]);
}

double kl_divergence(std::span<const float> p_logits, std::span<const float> q_logits) {
  STET_CHECK(p_logits.size() == q_logits.size());
  const Normalizer p_row = normalizer(p_logits), q_row = normalizer(q_logits);
  double kl = 0.0;
  for (size_t i = 0; i < p_logits.size(); ++i) {
    const double p = p_row.log_probability(p_logits[i]);
    kl += std::exp(p) * (p - q_row.log_probability(q_logits[i]));
  }
  return kl;
}

uint32_t most_likely(std::span<const float> logits) {
  return static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace stet
