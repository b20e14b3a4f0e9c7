#include "lab/metrics/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "lab/metrics/acceptance.h"
#include "lab/metrics/validity.h"

namespace stet {
namespace {

constexpr uint32_t kWindow = 100;
constexpr double kNsPerSecond = 1e9;

// Arrival of each token, by the client's clock and, where every frame has one, by the server's.
struct Arrivals {
  std::vector<int64_t> client, server;
  bool server_known = true;

  explicit Arrivals(const RequestRecord& request) {
    for (const ChunkEvent& chunk : request.chunks) {
      const size_t n = chunk.token_ids ? chunk.token_ids->size() : 0;
      client.insert(client.end(), n, chunk.client_ns);
      server_known = server_known && (n == 0 || chunk.server_ns.has_value());
      server.insert(server.end(), n, chunk.server_ns.value_or(0));
    }
  }
};

// Tokens that share the first time came together, in one frame or in several that were read at once.
uint32_t first_together(std::span<const int64_t> t) {
  return static_cast<uint32_t>(std::find_if(t.begin(), t.end(), [&](int64_t x) { return x != t[0]; }) - t.begin());
}

std::optional<WindowRate> rate_over(std::span<const int64_t> t, uint32_t n) {
  return t.empty() ? std::nullopt : window_rate(t, first_together(t), n);
}

bool carries_tokens(const ChunkEvent& chunk) {
  if (chunk.token_ids && !chunk.token_ids->empty()) return true;
  return chunk.channel != Channel::none && !chunk.text.empty();
}

// Cycles after the first, over the time since: the first one ends the prompt.
std::optional<double> passes_per_second(const RequestRecord& request) {
  std::vector<int64_t> times;
  for (const ChunkEvent& chunk : request.chunks)
    if (chunk.depth && chunk.token_ids && !chunk.token_ids->empty()) times.push_back(chunk.client_ns);
  const auto rate = rate_over(times, static_cast<uint32_t>(times.size()));
  if (!rate) return std::nullopt;
  return rate->interval_rate;
}

void add_cycle_figures(const RequestRecord& request, RequestFigures& f) {
  AcceptanceCounts counts;
  counts.add(request);
  if (counts.cycles == 0) return;
  f.tokens_per_cycle = static_cast<double>(counts.emitted) / static_cast<double>(counts.cycles);
  f.tokens_per_cycle_without_bonus = static_cast<double>(counts.accepted) / static_cast<double>(counts.cycles);
  f.target_passes_per_second = passes_per_second(request);
  f.acceptance_by_position = counts.by_position();
}

}  // namespace

std::optional<WindowRate> window_rate(std::span<const int64_t> t, uint32_t first_chunk, uint32_t n) {
  if (n == 0 || t.size() < n || first_chunk == 0 || first_chunk >= n) return std::nullopt;
  if (t[n - 1] <= t[0]) return std::nullopt;
  WindowRate r;
  r.tokens = n;
  r.intervals = n - first_chunk;
  r.seconds = static_cast<double>(t[n - 1] - t[0]) / kNsPerSecond;
  r.interval_rate = r.intervals / r.seconds;
  r.historical_inclusive_rate = r.tokens / r.seconds;
  for (uint32_t i = 0, run = 0; i < n; ++i) {
    run = i > 0 && t[i] == t[i - 1] ? run + 1 : 1;
    r.quantum = std::max(r.quantum, run);
  }
  return r;
}

RequestFigures request_figures(const RequestRecord& request, const FigureRules& rules) {
  RequestFigures f;
  const Arrivals arrivals(request);
  const auto& t = arrivals.client;
  f.tokens = t.empty() ? request.usage.completion_tokens.value_or(0) : static_cast<uint32_t>(t.size());
  const auto first = std::find_if(request.chunks.begin(), request.chunks.end(), carries_tokens);
  if (first != request.chunks.end())
    f.ttft_seconds = static_cast<double>(first->client_ns - request.sent_ns) / kNsPerSecond;
  const auto all = static_cast<uint32_t>(t.size());
  f.first_100 = rate_over(t, std::min(kWindow, all));
  f.all = rate_over(t, all);
  if (request.end_ns > request.sent_ns)
    f.wall_rate = f.tokens / (static_cast<double>(request.end_ns - request.sent_ns) / kNsPerSecond);
  std::optional<double> prompt_tokens;
  if (request.usage.prompt_tokens) prompt_tokens = *request.usage.prompt_tokens;
  if (request.prompt_token_ids) prompt_tokens = static_cast<double>(request.prompt_token_ids->size());
  if (prompt_tokens && f.ttft_seconds.value_or(0) > 0) f.prefill_rate = *prompt_tokens / *f.ttft_seconds;
  add_cycle_figures(request, f);
  if (arrivals.server_known)
    if (const auto rate = rate_over(arrivals.server, all)) f.server_rate = rate->interval_rate;
  judge_validity(request, rules, f);
  return f;
}

double median(std::vector<double> values) {
  STET_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Statistics statistics(std::vector<double> values) {
  Statistics s;
  s.count = values.size();
  if (values.empty()) return s;
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  const double at = static_cast<double>(n - 1) * 0.1;
  const size_t low = static_cast<size_t>(at), high = std::min(low + 1, n - 1);
  s.p10 = values[low] + (values[high] - values[low]) * (at - static_cast<double>(low));
  s.median = median(values);
  double sum = 0;
  for (const double v : values) sum += v;
  s.mean = sum / static_cast<double>(n);
  double squares = 0;
  for (const double v : values) squares += (v - s.mean) * (v - s.mean);
  s.stdev = n > 1 ? std::sqrt(squares / static_cast<double>(n - 1)) : 0;
  s.min = values.front();
  s.max = values.back();
  return s;
}

}  // namespace stet
