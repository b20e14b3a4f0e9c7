// Perplexity and KL divergence over windows of a text, by the rule of llama.cpp's tool (tools/perplexity, no stride):
// the text is cut into floor(tokens / n) windows of n tokens, the rest is dropped; each window runs alone, its first
// token replaced by the one that begins a text where the model asks for one; the logits at positions n/2 .. n-2 score
// the tokens that follow them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace stet {

struct Windows {
  uint32_t length = 0;  // n
  uint32_t count = 0;
  uint64_t text_tokens = 0;
  std::optional<int32_t> first_token;  // what each window begins with

  uint32_t first_scored() const { return length / 2; }
  uint32_t scored() const { return length - 1 - length / 2; }  // positions of a window
};

// Throws Error(kUsage) for a text of fewer than two windows.
Windows cut_windows(uint64_t text_tokens, uint32_t length, std::optional<int32_t> first_token);

// The ids that window i runs.
std::vector<int32_t> window_ids(std::span<const int32_t> text, const Windows& windows, uint32_t i);

// Sums in double over scores in the order they come.
class Mean {
 public:
  void add(double x) { ++count_, sum_ += x, squares_ += x * x; }
  uint64_t count() const { return count_; }
  double mean() const { return sum_ / static_cast<double>(count_); }
  // Of the mean: population deviation over sqrt(count - 1), as llama.cpp's tool has it.
  double standard_error() const;

 private:
  uint64_t count_ = 0;
  double sum_ = 0.0, squares_ = 0.0;
};

// A row's largest logit and the logarithm of its sum of exp(logit - max), apart so that neither swallows the other.
struct Normalizer {
  double max = 0.0, log_sum = 0.0;
  double log_probability(float logit) const { return (logit - max) - log_sum; }
};
Normalizer normalizer(std::span<const float> logits);

// -ln of the probability of a token.
double negative_log_likelihood(std::span<const float> logits, int32_t token);

// KL(p || q) of two rows of logits: sum of p (ln p - ln q).
double kl_divergence(std::span<const float> p_logits, std::span<const float> q_logits);

// The largest logit's index, the lowest among equals.
uint32_t most_likely(std::span<const float> logits);

}  // namespace stet
