#include "lab/metrics/repetition.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace stet {
namespace {

constexpr size_t kMaxPeriod = 128;
constexpr size_t kMinRounds = 3;
constexpr size_t kMinTokens = 64;
constexpr size_t kRun = 8;
constexpr size_t kRepetitionWindow = 256;
constexpr size_t kMinWindow = 128;

std::optional<RepetitionLoop> longest_cycle(std::span<const int32_t> ids) {
  RepetitionLoop best;
  for (size_t period = 1; period <= kMaxPeriod && period < ids.size(); ++period) {
    const size_t least = std::max(kMinTokens, kMinRounds * period);
    size_t begin = 0;  // of the stretch that reaches up to i
    for (size_t i = period; i <= ids.size(); ++i) {
      if (i < ids.size() && ids[i] == ids[i - period]) continue;
      const size_t tokens = i - begin;
      if (tokens >= least && tokens > best.tokens) {
        best.begin = static_cast<uint32_t>(begin);
        best.tokens = static_cast<uint32_t>(tokens);
        best.period = static_cast<uint32_t>(period);
      }
      begin = i + 1 - period;
    }
  }
  if (best.tokens == 0) return std::nullopt;
  return best;
}

std::string_view run_at(std::span<const int32_t> ids, size_t i) {
  return {reinterpret_cast<const char*>(ids.data() + i), kRun * sizeof(int32_t)};
}

std::optional<RepetitionLoop> first_poor_window(std::span<const int32_t> ids) {
  if (ids.size() < kMinWindow) return std::nullopt;
  const size_t window = std::min(kRepetitionWindow, ids.size()), runs = window - kRun + 1;
  std::unordered_map<std::string_view, size_t> count;
  for (size_t i = 0; i + kRun <= ids.size(); ++i) {
    ++count[run_at(ids, i)];
    if (i >= runs) {
      const auto left = count.find(run_at(ids, i - runs));
      if (--left->second == 0) count.erase(left);
    }
    if (i + 1 < runs || 2 * count.size() >= runs) continue;
    RepetitionLoop loop;
    loop.begin = static_cast<uint32_t>(i + 1 - runs);
    loop.tokens = static_cast<uint32_t>(window);
    loop.distinct = static_cast<uint32_t>(count.size());
    loop.of = static_cast<uint32_t>(runs);
    return loop;
  }
  return std::nullopt;
}

}  // namespace

std::optional<RepetitionLoop> repetition_loop(std::span<const int32_t> ids) {
  const std::optional<RepetitionLoop> cycle = longest_cycle(ids);
  return cycle ? cycle : first_poor_window(ids);
}

std::string shown(const RepetitionLoop& loop) {
  const uint32_t last = loop.begin + loop.tokens - 1;
  if (loop.period > 0) return fmt::format("tokens {} to {} repeat a cycle of {}", loop.begin, last, loop.period);
  return fmt::format("of the 8-token runs in tokens {} to {}, {} of {} are distinct", loop.begin, last, loop.distinct,
                     loop.of);
}

}  // namespace stet
