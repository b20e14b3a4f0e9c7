#include "lab/metrics/exactness.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/hash.h"

namespace stet {
namespace {

using StepKey = std::string;

// The requests of a start, by step.
std::map<StepKey, const RequestRecord*> steps_of(std::span<const RequestRecord* const> requests, uint32_t start) {
  std::map<StepKey, const RequestRecord*> steps;
  for (const RequestRecord* r : requests)
    if (r->start == start) steps.emplace(r->step_id, r);
  return steps;
}

// Empty: the same.
std::string difference_of(const RequestRecord& a, const RequestRecord& b) {
  if (a.prompt != b.prompt) return "the prompts differ";
  const std::vector<int32_t> x = a.token_ids(), y = b.token_ids();
  const auto difference = first_difference(x, y, a.cancelled_by_client || b.cancelled_by_client);
  return difference ? shown(*difference) : "";
}

std::string shown_id(const std::optional<int32_t>& id) { return id ? fmt::format("{}", *id) : "the end"; }

}  // namespace

bool ids_known(const RequestRecord& r) {
  const auto has_ids = [](const ChunkEvent& c) { return c.token_ids.has_value(); };
  const auto has_token = [](const ChunkEvent& c) { return c.channel != Channel::none; };
  return std::any_of(r.chunks.begin(), r.chunks.end(), has_ids) ||
         (r.cancelled_by_client && std::none_of(r.chunks.begin(), r.chunks.end(), has_token));
}

std::optional<TokenDifference> first_difference(std::span<const int32_t> expected, std::span<const int32_t> found,
                                                bool prefix) {
  const size_t both = std::min(expected.size(), found.size());
  size_t i = 0;
  while (i < both && expected[i] == found[i]) ++i;
  if (i == both && (prefix || expected.size() == found.size())) return std::nullopt;
  TokenDifference d;
  d.position = static_cast<uint32_t>(i);
  if (i < expected.size()) d.expected = expected[i];
  if (i < found.size()) d.found = found[i];
  return d;
}

RepeatTest repeat_test(std::span<const StartRecord> starts, std::span<const RequestRecord* const> requests) {
  RepeatTest test;
  test.starts = static_cast<uint32_t>(starts.size());
  for (const StartRecord& s : starts) test.fresh_starts += s.fresh ? 1 : 0;
  if (starts.empty()) return test;
  std::vector<std::map<StepKey, const RequestRecord*>> by_start;
  for (const StartRecord& s : starts) by_start.push_back(steps_of(requests, s.start));
  std::map<StepKey, const RequestRecord*> all;
  for (const auto& steps : by_start) all.insert(steps.begin(), steps.end());
  for (const auto& [step, any] : all) {
    bool complete = true, equal = true;
    for (size_t i = 0; i < by_start.size(); ++i) {
      const auto it = by_start[i].find(step);
      complete = complete && it != by_start[i].end() && ids_known(*it->second);
      if (!complete) break;
      const std::string difference = difference_of(*by_start[0].at(step), *it->second);
      if (difference.empty()) continue;
      if (equal && test.first.empty())
        test.first = fmt::format("step '{}', start {}: {}", step, starts[i].start, difference);
      equal = false;
    }
    if (!complete) {
      test.missing.push_back(step);
      continue;
    }
    ++test.steps;
    test.equal += equal ? 1 : 0;
  }
  return test;
}

std::string shown(const TokenDifference& d) {
  return fmt::format("position {}: expected {}, found {}", d.position, shown_id(d.expected), shown_id(d.found));
}

std::string token_digest(std::span<const int32_t> ids) { return sha256_hex(ids.data(), ids.size_bytes()); }

}  // namespace stet
