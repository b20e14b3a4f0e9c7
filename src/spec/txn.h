// A speculative step as a transaction: propose, verify, commit(n). Until commit the session does not change; a Txn that is destroyed
// without it leaves no trace (KV rows beyond the committed tokens are invisible and overwritten).
#pragma once

#include <functional>

#include "spec/draft.h"

namespace stet {

class Txn {
 public:
  enum class Phase : uint8_t { propose, verify, sample, commit };
  // Called as each phase begins, and in `sample` before each row; tests throw from it.
  using Hook = std::function<void(Phase)>;

  explicit Txn(Session& session, Hook hook = nullptr) : session_(session), hook_(std::move(hook)) {}
  Txn(const Txn&) = delete;
  Txn& operator=(const Txn&) = delete;

  // At most `depth` tokens of the draft, fewer where the context ends. Proposals outside the vocabulary are an internal error.
  void propose(Draft* draft, uint32_t depth);
  // Runs the target once over the tokens without KV rows and the proposals, then samples row by row: the tokens that the plain
  // decoder would have written, until the first that was not proposed. Throws Error(kInput) naming the command when logits are
  // not finite.
  void verify(Sampler& sampler, const std::function<bool(int32_t)>& is_stop);
  // The first n verified tokens become part of the session.
  void commit(uint32_t n);

  const std::vector<int32_t>& proposals() const { return proposals_; }
  // Verified tokens: accepted proposals, then one that the target chose itself (unless a stop token ended it before).
  const std::vector<int32_t>& verified() const { return verified_; }
  uint32_t accepted() const { return accepted_; }
  // Logits of the rows that gave the verified tokens, (verified().size(), vocab), until the next step.
  const float* logits() const { return logits_; }

 private:
  void at(Phase phase) const {
    if (hook_) hook_(phase);
  }

  Session& session_;
  Hook hook_;
  std::vector<int32_t> proposals_, verified_;
  uint32_t accepted_ = 0;
  const float* logits_ = nullptr;
};

// The greatest depth: a verify pass has one row more than proposals.
constexpr uint32_t kMaxDepth = kNarrowRows - 1;

}  // namespace stet
