// A start of an arm that serves: a fresh process, or the first contact with what runs already.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lab/bench/adapter.h"
#include "lab/compare/arm_spec.h"
#include "lab/compare/child_process.h"

namespace stet {

struct ServedArmOptions {
  std::string program;            // this binary, for serve arms
  std::string api_key;            // for arms that are not ours
  std::string model;              // what to ask such a server for; empty: the only one it has
  double ready_seconds = 600;     // for a server to load its model
  double measure_seconds = 3600;  // for a program to end
  std::function<bool()> stop;     // true: the user interrupted
};

class ServedArm {
 public:
  // Starts it and waits until it answers. Throws Error(kUsage) for flags that the runner sets itself, Error(kInput)
  // with the last words of a process that ended or did not become ready, Error(kCancelled).
  ServedArm(const ArmSpec& spec, const ServedArmOptions& options);
  // Ends the process.
  ~ServedArm();

  bool fresh() const { return process_ != nullptr; }
  const ServerIdentity& identity() const { return connected_.server; }
  RequestRecord ask(const PlannedRequest& request) { return ask_server(*client_, connected_, request); }
  // The value of a counter of /metrics, summed over its labels; nothing where the server has none of that name.
  std::optional<double> metric(const std::string& name);

 private:
  void wait_until_ready(const ServedArmOptions& options);

  TemporaryFolder folder_;
  std::unique_ptr<ChildProcess> process_;
  std::unique_ptr<HttpClient> client_;
  Connected connected_;
};

// The sum of the samples of a metric in Prometheus' text format; nothing where there is none.
std::optional<double> metric_in(std::string_view text, const std::string& name);

}  // namespace stet
