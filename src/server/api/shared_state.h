// What all requests have in common. Jobs keep it alive.
#pragma once

#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "server/api/api.h"
#include "server/api/metrics.h"

namespace stet {

struct SharedState {
  explicit SharedState(ApiOptions options_) : options(std::move(options_)) {}

  const ApiOptions options;
  Metrics metrics;
  const std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();

  double uptime_seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  }

  // One line, with everything that a terminal could obey made visible.
  void log(std::string_view line);
  // The line of a request that was answered with a status; more: what else there is to say of it.
  void log_request(const HttpRequest& request, int status, std::string_view more = "");
  // Says a line only the first time; topics are few.
  void log_once(const std::string& topic, std::string_view line);
  // Says once of each field that it changes nothing.
  void name_hints(const std::vector<std::string>& hints);

 private:
  std::mutex mutex_;
  std::set<std::string> said_;
};

}  // namespace stet
