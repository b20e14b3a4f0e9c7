#include "lab/compare/equality.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "lab/metrics/exactness.h"

namespace stet {
namespace {

// The cycles of an answer, in words that can be compared: depth and accepted of each.
std::vector<std::pair<uint32_t, uint32_t>> cycles_of(const RequestRecord& r) {
  std::vector<std::pair<uint32_t, uint32_t>> cycles;
  for (const ChunkEvent& c : r.chunks)
    if (c.depth && c.accepted) cycles.emplace_back(*c.depth, *c.accepted);
  return cycles;
}

std::optional<std::string> cycle_difference(const RequestRecord& a, const RequestRecord& b) {
  const auto x = cycles_of(a), y = cycles_of(b);
  const bool prefix = a.cancelled_by_client || b.cancelled_by_client;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    if (x[i] != y[i])
      return fmt::format("cycle {}: {} of {} accepted in A, {} of {} in B", i, x[i].second, x[i].first, y[i].second,
                         y[i].first);
  if (x.size() != y.size() && !prefix) return fmt::format("{} cycles in A, {} in B", x.size(), y.size());
  return std::nullopt;
}

// One answer of A for every step, and every answer of B against it.
void judge_arms(const ComparePlan& plan, const Packet& packet, Equality& result) {
  std::map<std::string, const RequestRecord*> of_a;
  for (const RequestRecord& r : packet.requests)
    if (r.arm == "A") of_a.emplace(r.step_id, &r);
  bool told_ids = false, told_cycles = false;
  for (const RequestRecord& b : packet.requests) {
    const auto a = of_a.find(b.step_id);
    if (b.arm != "B" || a == of_a.end()) continue;
    const auto x = a->second->token_ids(), y = b.token_ids();
    const bool prefix = a->second->cancelled_by_client || b.cancelled_by_client;
    const auto difference = first_difference(x, y, prefix);
    const bool same_prompt = a->second->prompt == b.prompt;
    ++result.compared;
    result.equal += same_prompt && !difference;
    if (!same_prompt && !told_ids)
      result.faults.push_back(fmt::format("step '{}': the arms were asked different things", b.step_id));
    else if (difference && !told_ids)
      result.faults.push_back(
          fmt::format("step '{}', start {} of B: {} (A is expected)", b.step_id, b.start, shown(*difference)));
    told_ids = told_ids || !same_prompt || difference;
    if (plan.equal != Equal::sequences) continue;
    const auto cycles = cycle_difference(*a->second, b);
    if (cycles && !told_cycles)
      result.faults.push_back(fmt::format("step '{}', start {} of B: other cycles: {}", b.step_id, b.start, *cycles));
    told_cycles = told_cycles || cycles;
    if (cycles_of(b).empty() && !y.empty())
      result.unproven.push_back(
          fmt::format("step '{}', start {} of B: the server does not report its cycles", b.step_id, b.start));
  }
}

}  // namespace

void judge_repeats(const ComparePlan& plan, const Packet& packet, const std::string& arm, Equality& result) {
  std::vector<StartRecord> starts;
  for (const StartRecord& s : packet.starts)
    if (s.arm == arm) starts.push_back(s);
  std::vector<const RequestRecord*> requests;
  for (const RequestRecord& r : packet.requests)
    if (r.arm == arm) requests.push_back(&r);
  const RepeatTest test = repeat_test(starts, requests);
  if (!test.first.empty()) result.faults.push_back(fmt::format("arm {} does not repeat itself: {}", arm, test.first));
  for (const std::string& step : test.missing)
    result.unproven.push_back(fmt::format("arm {} gives no token ids for step '{}' in some start", arm, step));
  if (test.fresh_starts < test.starts)
    result.unproven.push_back(fmt::format("arm {}: {} of {} starts were no fresh process", arm,
                                          test.starts - test.fresh_starts, test.starts));
  if (test.steps < plan.steps.size() && test.missing.empty())
    result.unproven.push_back(fmt::format("arm {} answered {} of {} steps", arm, test.steps, plan.steps.size()));
}

Equality judge_equality(const ComparePlan& plan, const Packet& packet) {
  Equality result;
  judge_repeats(plan, packet, "A", result);
  judge_repeats(plan, packet, "B", result);
  result.basis = "each arm against itself over all its starts";
  if (plan.equal != Equal::nothing) {
    result.basis += plan.equal == Equal::ids ? "; B against A: token ids"
                                             : "; B against A: token ids, and proposals and acceptances of every cycle";
    judge_arms(plan, packet, result);
  }
  result.proved = result.faults.empty() && result.unproven.empty();
  return result;
}

}  // namespace stet
