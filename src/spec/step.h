// The only way tokens appear: one transaction, and what it gave.
#pragma once

#include "spec/txn.h"

namespace stet {

struct StepResult {
  std::vector<int32_t> tokens;  // committed, 1 .. depth + 1
  uint32_t proposed = 0;
  uint32_t accepted = 0;        // proposals among tokens
  const float* logits = nullptr;  // (tokens, vocab), until the next step; null of a cycle on a device (spec/device_cycles.h)
};

struct StepOptions {
  Draft* draft = nullptr;
  uint32_t depth = 0;
  std::function<bool(int32_t)> is_stop;  // a token after which nothing is kept
  uint32_t max_tokens = UINT32_MAX;      // at most so many are committed, >= 1
  Txn::Hook hook;
};

StepResult step(Session& session, Sampler& sampler, const StepOptions& options);

}  // namespace stet
