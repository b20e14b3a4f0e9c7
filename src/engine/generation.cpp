#include <algorithm>

#include "base/hash.h"
#include "stet/engine.h"

namespace stet {
namespace {

// Equals tokens.size(); a record whose ids were left out keeps its rates.
uint64_t emitted_tokens(const std::vector<Cycle>& cycles) {
  uint64_t sum = 0;
  for (const Cycle& c : cycles) sum += c.emitted;
  return sum;
}

}  // namespace

std::string_view finish_name(Finish finish) {
  switch (finish) {
    case Finish::stop: return "stop";
    case Finish::length: return "length";
    case Finish::context: return "context";
    case Finish::cancelled: return "cancelled";
  }
  return "";
}

std::string Generation::digest() const { return sha256_hex(tokens.data(), tokens.size() * sizeof(int32_t)); }

double Generation::prefill_tokens_per_second() const {
  return first_token_seconds > 0 ? (prompt_tokens - cached_tokens) / first_token_seconds : 0.0;
}

double Generation::decode_tokens_per_second() const {
  if (cycles.size() < 2) return 0.0;
  const double seconds = cycles.back().seconds - cycles.front().seconds;
  const uint64_t after_first = emitted_tokens(cycles) - cycles.front().emitted;
  return seconds > 0 ? static_cast<double>(after_first) / seconds : 0.0;
}

double Generation::tokens_per_cycle() const {
  return cycles.empty() ? 0.0 : static_cast<double>(emitted_tokens(cycles)) / static_cast<double>(cycles.size());
}

std::vector<double> Generation::acceptance_by_position() const {
  std::vector<uint32_t> proposed, accepted;
  for (const Cycle& c : cycles) {
    proposed.resize(std::max<size_t>(proposed.size(), c.proposed));
    accepted.resize(proposed.size());
    for (uint32_t i = 0; i < c.proposed; ++i) {
      ++proposed[i];
      accepted[i] += i < c.accepted;
    }
  }
  std::vector<double> share;
  for (size_t i = 0; i < proposed.size(); ++i) share.push_back(static_cast<double>(accepted[i]) / proposed[i]);
  return share;
}

}  // namespace stet
