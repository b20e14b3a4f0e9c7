#include "lab/metrics/repetition.h"

#include <algorithm>

namespace stet {
namespace {

constexpr size_t kMaxPeriod = 128;
constexpr size_t kMinRounds = 4;
constexpr size_t kMinTokens = 64;

}  // namespace

std::optional<RepetitionLoop> repetition_loop(std::span<const int32_t> ids) {
  RepetitionLoop best;
  for (size_t period = 1; period <= kMaxPeriod && period < ids.size(); ++period) {
    const size_t least = std::max(kMinTokens, kMinRounds * period);
    size_t begin = 0;  // of the stretch that reaches up to i
    for (size_t i = period; i <= ids.size(); ++i) {
      if (i < ids.size() && ids[i] == ids[i - period]) continue;
      const size_t tokens = i - begin;
      if (tokens >= least && tokens > best.tokens)
        best = {static_cast<uint32_t>(begin), static_cast<uint32_t>(tokens), static_cast<uint32_t>(period)};
      begin = i + 1 - period;
    }
  }
  if (best.tokens == 0) return std::nullopt;
  return best;
}

}  // namespace stet
