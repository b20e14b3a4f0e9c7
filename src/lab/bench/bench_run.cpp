#include "base/error.h"
#include "lab/bench/bench.h"
#include "lab/metrics/system.h"
#include "lab/packet/packet.h"
#include "lab/packet/teacher.h"
#include "base/strict_json.h"

namespace stet {
namespace {

class Run {
 public:
  Run(const BenchJob& job, const std::string& packet, Attempt& attempt,
      const std::function<void(const BenchProgress&)>& progress)
      : job_(job),
        attempt_(attempt),
        progress_(progress),
        requests_(planned_requests(job.questions)),
        writer_(packet, bench_plan_json(job)) {
    writer_.note("ledger", attempt.context_json());
    if (!job.teacher_packet.empty()) writer_.note("teacher", teacher_note(job.teacher_packet));
  }

  std::string all() {
    for (const BenchArmJob& arm : job_.arms)
      for (uint32_t start = 0; start < arm.starts; ++start) one(arm, start);
    return writer_.finish();
  }

 private:
  void one(const BenchArmJob& job, uint32_t start) {
    tell(job, start, 0, nullptr);
    const std::unique_ptr<Arm> arm = job.open();
    writer_.add(StartRecord{job.name, start, arm->fresh(), arm->identity_json(), monotonic_ns()});
    for (size_t i = 0; i < requests_.size(); ++i) {
      tell(job, start, i, nullptr);
      attempt_.treatment();
      RequestRecord record = arm->ask(requests_[i]);
      record.id = fmt::format("{}-{}-{}", job.name, start, requests_[i].step_id);
      record.arm = job.name;
      record.start = start;
      record.index = static_cast<uint32_t>(i);
      writer_.add(record);
      tell(job, start, i, &record);
    }
  }

  void tell(const BenchArmJob& job, uint32_t start, size_t index, const RequestRecord* record) const {
    if (progress_) progress_({job.name, start, job.starts, index, requests_.size(), &requests_[index], record});
  }

  const BenchJob& job_;
  Attempt& attempt_;
  const std::function<void(const BenchProgress&)>& progress_;
  const std::vector<PlannedRequest> requests_;
  PacketWriter writer_;
};

std::string first_reason(const Json& arm) {
  for (const char* list : {"invalid", "unproven"})
    if (!arm.at(list).empty()) return arm.at(list).front().get<std::string>();
  for (const Json& request : arm.at("requests"))
    if (!request.at("invalid").empty())
      return fmt::format("{}: {}", request.at("step").get<std::string>(),
                         request.at("invalid").front().get<std::string>());
  return "";
}

}  // namespace

BenchOutcome run_bench(const BenchJob& job, const std::string& packet, Attempt& attempt,
                       const std::function<void(const BenchProgress&)>& progress) {
  BenchOutcome outcome;
  outcome.results_json = Run(job, packet, attempt, progress).all();
  outcome.packet_sha256 = manifest_sha256(packet);
  const Json file = parse_json(outcome.results_json, "results.json");
  const Json& results = file.at("results");
  outcome.verdict = results.at("verdict").get<std::string>();
  for (const Json& arm : results.at("arms")) {
    outcome.diverged = outcome.diverged || !arm.at("exactness").at("first_difference").is_null() ||
                       !arm.at("exactness").at("repeat").at("first_difference").is_null();
    if (outcome.reason.empty() && arm.at("verdict") != "valid") outcome.reason = first_reason(arm);
  }
  return outcome;
}

Outcome ledger_outcome(const BenchOutcome& outcome) {
  Outcome o;
  o.verdict = outcome.verdict;
  o.reason = outcome.reason;
  o.packet_sha256 = outcome.packet_sha256;
  const bool valid = outcome.verdict == "valid";
  o.status.correctness = outcome.diverged ? Correctness::inexact : valid ? Correctness::exact : Correctness::unproven;
  o.status.endpoint = EndpointStatus::measured;
  o.status.infrastructure = Infrastructure::sound;
  o.status.measurement = valid                          ? Measurement::valid
                         : outcome.verdict == "invalid" ? Measurement::invalid
                                                        : Measurement::unproven;
  o.status.lifecycle = Lifecycle::finished;
  return o;
}

}  // namespace stet
