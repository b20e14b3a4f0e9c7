// How often each token occurs in an output, kept up to date as the output grows, is cut back and grows differently.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stet {

class TokenCounts {
 public:
  // Ids below vocab. Room for outputs of kOutputRoom tokens is reserved; longer ones allocate as they grow.
  explicit TokenCounts(uint32_t vocab);

  // Counts this prompt and this output, whatever was counted before. Costs what changed, and a comparison with what did
  // not. Throws Error(kInternal) for an id that is not below vocab.
  void update(std::span<const int32_t> prompt, std::span<const int32_t> output);

  // Every token of prompt or output once, in the order of first occurrence.
  std::span<const int32_t> distinct() const { return distinct_; }
  // How often the output holds the token.
  uint32_t in_output(int32_t id) const { return output_count_[static_cast<size_t>(id)]; }

  static constexpr size_t kOutputRoom = 1u << 17;

 private:
  void reset(std::span<const int32_t> prompt);
  void push(int32_t id);
  void pop();

  std::vector<uint32_t> output_count_;
  std::vector<uint8_t> in_prompt_;
  std::vector<int32_t> prompt_;
  std::vector<int32_t> output_;
  std::vector<int32_t> distinct_;  // the prompt's tokens, then a stack: the last output token that was new lies on top
};

}  // namespace stet
