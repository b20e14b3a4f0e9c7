#include "spec/token_counts.h"

#include <algorithm>

#include "base/error.h"

namespace stet {

TokenCounts::TokenCounts(uint32_t vocab) : output_count_(vocab), in_prompt_(vocab) {
  output_.reserve(kOutputRoom);
  distinct_.reserve(vocab);
}

void TokenCounts::update(std::span<const int32_t> prompt, std::span<const int32_t> output) {
  if (!std::ranges::equal(prompt, prompt_)) reset(prompt);
  const size_t shared = std::min(output.size(), output_.size());
  const auto kept = static_cast<size_t>(
      std::mismatch(output_.begin(), output_.begin() + static_cast<std::ptrdiff_t>(shared), output.begin()).first -
      output_.begin());
  while (output_.size() > kept) pop();
  for (int32_t id : output.subspan(kept)) push(id);
}

void TokenCounts::reset(std::span<const int32_t> prompt) {
  while (!output_.empty()) pop();
  for (int32_t id : distinct_) in_prompt_[static_cast<size_t>(id)] = 0;
  distinct_.clear();
  prompt_.clear();
  for (int32_t id : prompt) {
    STET_CHECK(id >= 0 && static_cast<size_t>(id) < in_prompt_.size());
    prompt_.push_back(id);
    if (in_prompt_[static_cast<size_t>(id)] != 0) continue;
    in_prompt_[static_cast<size_t>(id)] = 1;
    distinct_.push_back(id);
  }
}

void TokenCounts::push(int32_t id) {
  STET_CHECK(id >= 0 && static_cast<size_t>(id) < output_count_.size());
  const auto i = static_cast<size_t>(id);
  if (output_count_[i]++ == 0 && in_prompt_[i] == 0) distinct_.push_back(id);
  output_.push_back(id);
}

void TokenCounts::pop() {
  const auto i = static_cast<size_t>(output_.back());
  output_.pop_back();
  if (--output_count_[i] == 0 && in_prompt_[i] == 0) distinct_.pop_back();
}

}  // namespace stet
