#include "state/session.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"

namespace stet {

uint32_t Session::begin(std::span<const int32_t> prompt, bool reuse) {
  const uint32_t context = decoder_.options().context;
  if (prompt.empty()) fail(Code::kUsage, "the prompt is empty: there is nothing to continue");
  if (prompt.size() >= context)
    fail(Code::kUsage, "the prompt has {} tokens; the context holds {} and needs room for an answer (--ctx)", prompt.size(), context);
  for (int32_t token : prompt)
    if (token < 0 || static_cast<uint32_t>(token) >= decoder_.desc().vocab)
      fail(Code::kUsage, "token {} is outside the vocabulary of {} tokens", token, decoder_.desc().vocab);
  uint32_t common = 0;
  if (reuse) {
    const uint32_t limit = std::min<uint32_t>(cached_, static_cast<uint32_t>(prompt.size()) - 1);
    while (common < limit && tokens_[common] == prompt[common]) ++common;
    common = restorable(common);
  }
  tokens_.assign(prompt.begin(), prompt.end());
  prompt_tokens_ = static_cast<uint32_t>(prompt.size());
  cached_ = common;
  return common;
}

void Session::commit(std::span<const int32_t> tokens, uint32_t cached) {
  STET_CHECK(!tokens.empty() && cached >= cached_ && cached < tokens_.size() + tokens.size());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  cached_ = cached;
}

uint64_t Session::state_hash() const {
  uint64_t hash = xxh3(tokens_.data(), tokens_.size() * sizeof(int32_t));
  const uint32_t counters[2] = {prompt_tokens_, cached_};
  hash = xxh3(counters, sizeof counters, hash);
  const uint64_t kv = decoder_.kv_hash(restorable(cached_));
  return xxh3(&kv, sizeof kv, hash);
}

}  // namespace stet
