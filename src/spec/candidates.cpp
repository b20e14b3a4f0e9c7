#include "spec/candidates.h"

#include <algorithm>

#include "base/error.h"

namespace stet {

// A key, and the tally of the keys above it.
struct Candidates::Cut {
  uint32_t key;
  Tally above;
};

void Candidates::select(const SampleKernels& kernels, const float* logits, uint32_t n, float max, float temperature,
                        const Truncation& truncation) {
  kernels_ = &kernels;
  if (keys_.size() < n) keys_.resize(n), ids_.resize(n), logits_.resize(n);
  size_ = n;
  whole_ = true;
  if (truncation.top_k != 0 && truncation.top_k < n) {
    keep_top_k(logits, truncation.top_k);
    gather(logits);
  }
  if (truncation.top_p < 1.0f || truncation.min_p > 0.0f) {
    const uint64_t total = kernels.weights(whole_ ? logits : logits_.data(), size_, max, temperature, keys_.data());
    if (truncation.top_p < 1.0f) keep_top_p(total, truncation.top_p);
    if (truncation.min_p > 0.0f) keep_at_least(static_cast<uint32_t>(truncation.min_p * 0x1p31f));
  }
  if (whole_) keep_at_least(0);
  gather(logits);
  STET_CHECK(size_ > 0);
}

void Candidates::keep_top_k(const float* row, uint32_t k) {
  kernels_->sort_keys(row, size_, keys_.data());
  const Cut cut = largest_key_where([k](const Tally& t) { return t.count >= k; });
  keep_cut(cut.key, k - cut.above.count);
}

void Candidates::keep_top_p(uint64_t total, float top_p) {
  using Wide = unsigned __int128;
  const uint64_t p = std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(top_p) * 0x1p32));
  const auto goal = static_cast<uint64_t>((static_cast<Wide>(p) * total + 0xffffffffu) >> 32);
  const Cut cut = largest_key_where([goal](const Tally& t) { return t.sum >= goal; });
  // goal is at least 1, so key is not 0; the equal ones that are needed for the rest of it, rounded up.
  keep_cut(cut.key, (goal - cut.above.sum + cut.key - 1) / cut.key);
}

// The largest key such that the tally of the keys that are that or more reaches: found bit by bit, high to low. Drops
// keys below it on the way, so that most of the passes are short. reaches() holds for the tally of all keys, and for a
// tally that holds more.
template <typename Reaches>
Candidates::Cut Candidates::largest_key_where(Reaches reaches) {
  Cut cut = {0, {0, 0}};
  for (int bit = 31; bit >= 0; --bit) {
    const uint32_t key = cut.key | (1u << bit);
    const Tally tally = kernels_->tally(keys_.data(), size_, key);
    if (!reaches(tally)) {
      cut.above = tally;
      continue;
    }
    cut.key = key;
    if (tally.count <= size_ - size_ / 4) keep_at_least(key);
  }
  return cut;
}

void Candidates::keep_at_least(uint32_t key) {
  size_ = kernels_->compact(keys_.data(), whole_ ? nullptr : ids_.data(), size_, key, keys_.data(), ids_.data());
  whole_ = false;
}

// Keeps what is above key, and of the tokens equal to it the first equal_kept by id.
void Candidates::keep_cut(uint32_t key, uint64_t equal_kept) {
  keep_at_least(key);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < size_; ++i) {
    if (keys_[i] == key && equal_kept == 0) continue;
    if (keys_[i] == key) --equal_kept;
    keys_[kept] = keys_[i];
    ids_[kept++] = ids_[i];
  }
  size_ = kept;
}

void Candidates::gather(const float* row) {
  for (uint32_t i = 0; i < size_; ++i) logits_[i] = row[ids_[i]];
}

}  // namespace stet
