#include "server/api/metrics.h"

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <mutex>

namespace stet {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;

const Buckets kSeconds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600};
const Buckets kTokenSeconds = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 2, 5};
const Buckets kTokens = {1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144};
const Buckets kCycleTokens = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16};

}  // namespace

struct Metrics::Impl {
  prometheus::Registry registry;

  Counter& counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
  }
  Gauge& gauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
  }
  Histogram& histogram(const char* name, const char* help, const Buckets& buckets) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, buckets);
  }
  Family<Counter>& counters(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }

  Family<Counter>& replies =
      counters("stet_requests_total", "Requests that were answered, by endpoint and HTTP status.");
  Family<Counter>& finishes = counters("stet_generations_total", "Generations that ended, by reason.");
  Family<Counter>& position_proposed =
      counters("stet_position_proposed_total", "Cycles with a proposed token at a position of the draft.");
  Family<Counter>& position_accepted =
      counters("stet_position_accepted_total", "Cycles whose proposed token at a position was accepted.");
  Counter& prompt_tokens = counter("stet_prompt_tokens_total", "Prompt tokens, cached ones included.");
  Counter& cached_tokens =
      counter("stet_cached_prompt_tokens_total", "Prompt tokens whose KV rows were there already.");
  Counter& output_tokens = counter("stet_generated_tokens_total", "Tokens of answers, end tokens included.");
  Counter& cycles = counter("stet_cycles_total", "Passes of the target that committed tokens.");
  Counter& proposed = counter("stet_proposed_tokens_total", "Tokens that the draft proposed.");
  Counter& accepted = counter("stet_accepted_tokens_total", "Proposed tokens that the target accepted.");
  Histogram& queue_seconds = histogram("stet_queue_seconds", "From arrival until a request's turn came.", kSeconds);
  Histogram& first_token_seconds =
      histogram("stet_time_to_first_token_seconds", "From arrival to the first token.", kSeconds);
  Histogram& token_seconds =
      histogram("stet_inter_token_seconds", "Time of a token after the first cycle: a cycle's time over its tokens.",
                kTokenSeconds);
  Histogram& request_seconds = histogram("stet_request_seconds", "From arrival to the end of an answer.", kSeconds);
  Histogram& request_prompt = histogram("stet_request_prompt_tokens", "Prompt tokens of a request.", kTokens);
  Histogram& request_output = histogram("stet_request_generated_tokens", "Tokens of an answer.", kTokens);
  Histogram& cycle_tokens = histogram("stet_tokens_per_cycle", "Tokens that a cycle added.", kCycleTokens);
  Gauge& ready = gauge("stet_ready", "1 when the model is loaded and requests are taken.");
  Gauge& active = gauge("stet_active_requests", "Requests being answered: 0 or 1.");
  Gauge& waiting = gauge("stet_queue_waiting", "Requests in the queue.");
  Gauge& queue_limit = gauge("stet_queue_limit", "Requests that the queue holds.");
  Gauge& cache_tokens = gauge("stet_cache_tokens", "Tokens with rows in the KV cache.");
  Gauge& context_tokens = gauge("stet_context_tokens", "Tokens that the KV cache holds.");
  Gauge& uptime = gauge("stet_uptime_seconds", "Since the server started.");
  std::mutex scrape;  // gauges are set and read together

  void count_positions(const std::vector<Cycle>& all) {
    std::vector<uint64_t> offered, taken;
    for (const Cycle& cycle : all) {
      offered.resize(std::max<size_t>(offered.size(), cycle.proposed));
      taken.resize(offered.size());
      for (uint32_t i = 0; i < cycle.proposed; ++i) {
        ++offered[i];
        taken[i] += i < cycle.accepted;
      }
    }
    for (size_t i = 0; i < offered.size(); ++i) {
      const prometheus::Labels labels = {{"position", fmt::format("{}", i + 1)}};
      position_proposed.Add(labels).Increment(static_cast<double>(offered[i]));
      position_accepted.Add(labels).Increment(static_cast<double>(taken[i]));
    }
  }
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::replied(std::string_view endpoint, int status) {
  impl_->replies.Add({{"endpoint", std::string(endpoint)}, {"status", fmt::format("{}", status)}}).Increment();
}

void Metrics::queued(double seconds) { impl_->queue_seconds.Observe(seconds); }
void Metrics::first_token(double seconds) { impl_->first_token_seconds.Observe(seconds); }

void Metrics::tokens(uint32_t count, double seconds) {
  for (uint32_t i = 0; i < count; ++i) impl_->token_seconds.Observe(seconds / count);
}

void Metrics::finished(const Generation& answer, double seconds) {
  Impl& m = *impl_;
  m.finishes.Add({{"finish", std::string(finish_name(answer.finish))}}).Increment();
  m.prompt_tokens.Increment(answer.prompt_tokens);
  m.cached_tokens.Increment(answer.cached_tokens);
  uint64_t output = 0, proposed = 0, accepted = 0;
  for (const Cycle& cycle : answer.cycles) {
    output += cycle.emitted;
    proposed += cycle.proposed;
    accepted += cycle.accepted;
    m.cycle_tokens.Observe(cycle.emitted);
  }
  m.output_tokens.Increment(static_cast<double>(output));
  m.cycles.Increment(static_cast<double>(answer.cycles.size()));
  m.proposed.Increment(static_cast<double>(proposed));
  m.accepted.Increment(static_cast<double>(accepted));
  m.count_positions(answer.cycles);
  m.request_seconds.Observe(seconds);
  m.request_prompt.Observe(answer.prompt_tokens);
  m.request_output.Observe(static_cast<double>(output));
}

void Metrics::failed() { impl_->finishes.Add({{"finish", "failed"}}).Increment(); }

std::string Metrics::text(const LoopStatus& status, double uptime_seconds) {
  Impl& m = *impl_;
  const std::lock_guard lock(m.scrape);
  m.ready.Set(status.load.ready && !status.stopping);
  m.active.Set(status.active.has_value());
  m.waiting.Set(status.waiting);
  m.queue_limit.Set(status.queue_limit);
  m.cache_tokens.Set(status.cached_tokens);
  m.context_tokens.Set(status.context);
  m.uptime.Set(uptime_seconds);
  return prometheus::TextSerializer().Serialize(m.registry.Collect());
}

}  // namespace stet
