// What /metrics counts (docs/api.md has the list).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "server/loop/generation_loop.h"

namespace stet {

constexpr int kClientLeft = 499;  // a status for logs and metrics: nobody was there to be told

// Functions may be called from any thread.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void replied(std::string_view endpoint, int status);      // endpoint: of a fixed set, never what a client wrote
  void queued(double seconds);                              // until its turn came
  void first_token(double seconds);                         // since it arrived
  void tokens(uint32_t count, double seconds);              // that came together, so long after those before them
  void finished(const Generation& answer, double seconds);  // whether complete or cancelled; seconds since it arrived

  void failed();

  // Prometheus' text format: what was counted, and the state of the loop.
  std::string text(const LoopStatus& status, double uptime_seconds);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stet
