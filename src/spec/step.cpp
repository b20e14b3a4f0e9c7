#include "spec/step.h"

#include <algorithm>

namespace stet {

StepResult step(Session& session, Sampler& sampler, const StepOptions& options) {
  Txn txn(session, options.hook);
  txn.propose(options.draft, std::min(options.depth, options.max_tokens - 1));
  txn.verify(sampler, options.is_stop);
  const uint32_t n = static_cast<uint32_t>(std::min<size_t>(txn.verified().size(), options.max_tokens));
  txn.commit(n);
  const auto& tokens = txn.verified();
  return {{tokens.begin(), tokens.begin() + n}, static_cast<uint32_t>(txn.proposals().size()), std::min(txn.accepted(), n), txn.logits()};
}

}  // namespace stet
