// Which tokens of a row top-k, top-p and min-p leave, exactly: all decisions are comparisons of integers, so the set
// does not depend on how it is found.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/sample/sample.h"

namespace stet {

struct Truncation {
  uint32_t top_k = 0;  // 0: all
  float top_p = 1.0f;  // 1: all
  float min_p = 0.0f;  // 0: all
  // Whether a row of vocab tokens may lose one.
  bool cuts(uint32_t vocab) const { return (top_k != 0 && top_k < vocab) || top_p < 1.0f || min_p > 0.0f; }
};

class Candidates {
 public:
  // One after the other, with w = floor(exp(x) * 2^31) and x the tempered logit (kernels/sample/sample.h):
  // - top-k: the first k tokens by (logit descending, id ascending);
  // - top-p: of those by (w descending, id ascending), the shortest prefix whose sum of w reaches ceil(P * total /
  // 2^32), where
  //   total is the sum over all of them and P = max(1, floor(top_p * 2^32));
  // - min-p: those with w >= floor(min_p * 2^31); the largest w is 2^31.
  // logits: (n), finite; max: the largest. The buffers grow to n once.
  void select(const SampleKernels& kernels, const float* logits, uint32_t n, float max, float temperature,
              const Truncation& truncation);

  std::span<const uint32_t> ids() const { return {ids_.data(), size_}; }     // ascending
  std::span<const float> logits() const { return {logits_.data(), size_}; }  // of ids()

 private:
  struct Cut;
  void keep_top_k(const float* row, uint32_t k);
  void keep_top_p(uint64_t total, float top_p);
  template <typename Reaches>
  Cut largest_key_where(Reaches reaches);
  void keep_at_least(uint32_t key);
  void keep_cut(uint32_t key, uint64_t equal_kept);
  void gather(const float* row);

  const SampleKernels* kernels_ = nullptr;
  std::vector<uint32_t> keys_;
  std::vector<uint32_t> ids_;  // while whole_, these are 0 .. size_ - 1 and not written
  std::vector<float> logits_;
  uint32_t size_ = 0;
  bool whole_ = true;
};

}  // namespace stet
