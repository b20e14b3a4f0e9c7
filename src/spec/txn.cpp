#include "spec/txn.h"

#include <algorithm>

#include "base/error.h"
#include "spec/nonfinite.h"

namespace stet {

void Txn::propose(Draft* draft, uint32_t depth) {
  at(Phase::propose);
  STET_CHECK(proposals_.empty() && depth <= kMaxDepth && session_.room() > 0);
  // The last verified token needs room, but no KV row.
  const uint32_t limit = std::min(depth, session_.room() - 1);
  if (draft == nullptr || limit == 0) return;
  draft->propose(session_.view(), limit, proposals_);
  STET_CHECK(proposals_.size() <= limit);
  for (int32_t t : proposals_) STET_CHECK(t >= 0 && static_cast<uint32_t>(t) < session_.decoder().desc().vocab);
}

void Txn::verify(Sampler& sampler, const std::function<bool(int32_t)>& is_stop) {
  at(Phase::verify);
  STET_CHECK(verified_.empty());
  const uint32_t cached = session_.restorable(session_.cached_tokens());
  std::vector<int32_t> timeline(session_.tokens().begin(), session_.tokens().end());
  timeline.insert(timeline.end(), proposals_.begin(), proposals_.end());
  const uint32_t rows = static_cast<uint32_t>(proposals_.size()) + 1, vocab = session_.decoder().desc().vocab;
  logits_ = session_.decoder().forward(std::span(timeline).subspan(cached), cached, rows);
  const auto prompt = session_.prompt();
  for (uint32_t i = 0; i < rows; ++i) {
    at(Phase::sample);
    const uint32_t position = session_.committed_tokens() + i;
    const auto output = std::span<const int32_t>(timeline).first(position).subspan(prompt.size());
    const SampleResult result = sampler.sample(logits_ + size_t{i} * vocab, prompt, output, position);
    if (!result.ok()) report_nonfinite(session_.decoder(), timeline, cached, rows, position);
    verified_.push_back(result.token);
    if (i == proposals_.size() || result.token != proposals_[i]) return;
    ++accepted_;
    if (is_stop && is_stop(result.token)) return;
  }
}

void Txn::commit(uint32_t n) {
  at(Phase::commit);
  STET_CHECK(n >= 1 && n <= verified_.size());
  // Token n was not necessarily run; those before it were proposals, run and accepted.
  session_.commit(std::span(verified_).first(n), session_.committed_tokens() + n - 1);
}

}  // namespace stet
