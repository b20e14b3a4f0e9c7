// One mutable timeline: the tokens of a request, and how many of them have KV rows. Rows beyond committed tokens are invisible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "state/decoder.h"

namespace stet {

// What a draft may look at.
struct SessionView {
  std::span<const int32_t> tokens;  // prompt and output, all committed
  uint32_t prompt_tokens = 0;
  uint32_t cached_tokens = 0;  // leading ones whose rows the target has
};

class Session {
 public:
  explicit Session(Decoder& decoder) : decoder_(decoder) {}

  // Starts a request: the timeline becomes the prompt. KV rows of the longest common beginning with what the cache holds are kept
  // when `reuse`, if the session can return to its end (restorable()); at least the last token of the prompt is run again, because
  // its logits are needed. Returns the tokens kept.
  // Throws Error(kUsage) with the numbers when the prompt does not fit, leaving the session as it was.
  uint32_t begin(std::span<const int32_t> prompt, bool reuse);

  std::span<const int32_t> tokens() const { return tokens_; }
  std::span<const int32_t> prompt() const { return tokens().first(prompt_tokens_); }
  std::span<const int32_t> output() const { return tokens().subspan(prompt_tokens_); }
  SessionView view() const { return {tokens_, prompt_tokens_, restorable(cached_)}; }

  uint32_t committed_tokens() const { return static_cast<uint32_t>(tokens_.size()); }
  // Leading tokens that have KV rows. A pass begins at restorable() of it: behind a long pass that failed, rings have lost some.
  uint32_t cached_tokens() const { return cached_; }
  // The nearest position at or below `position` that the session can return to: any where all rows are kept for ever; with
  // rings one near the front, or 0.
  uint32_t restorable(uint32_t position) const { return decoder_.restorable(std::min(position, cached_)); }
  // Tokens that still fit into the context.
  uint32_t room() const { return decoder_.options().context - committed_tokens(); }

  // The one place where the timeline grows: appends tokens; KV rows of the first `cached` tokens of it are there.
  // REQUIRES: cached <= committed_tokens() + tokens.size() - 1, and rows below it were run with these tokens.
  void commit(std::span<const int32_t> tokens, uint32_t cached);

  Decoder& decoder() const { return decoder_; }
  // XXH3-64 of everything that a later step can see: tokens, counters, KV rows of the cached tokens.
  uint64_t state_hash() const;

 private:
  Decoder& decoder_;
  std::vector<int32_t> tokens_;
  uint32_t prompt_tokens_ = 0;
  uint32_t cached_ = 0;
};

}  // namespace stet
