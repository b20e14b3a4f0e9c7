// One arm of a benchmark, judged from its raw events.
#pragma once

#include <string>
#include <vector>

#include "lab/metrics/exactness.h"
#include "lab/metrics/metrics.h"
#include "lab/packet/bench_plan.h"
#include "lab/packet/packet.h"
#include "lab/packet/teacher.h"

namespace stet {

struct JudgedRequest {
  const RequestRecord* record = nullptr;
  RequestFigures figures;
  std::optional<bool> exact;  // nothing: not compared
  std::string difference;     // from the teacher, or why it was not compared
};

class BenchArmJudge {
 public:
  // Keeps references to all three.
  BenchArmJudge(const BenchPlan& plan, const BenchArm& arm, const Packet& packet);

  // For a candidate. teacher: null: there is none. against: what it is called in the results.
  void compare(const Teacher* teacher, const std::string& against);

  // "valid", "invalid", "unproven".
  std::string verdict() const;
  Json results() const;

 private:
  void collect();
  void judge_completeness();
  void judge_repeats();
  void judge_repeatability();
  void judge_identity();
  void judge_machine();
  void judge_acceptance();
  void prove_by_repeat();
  void compare_request(JudgedRequest& request, const Teacher& teacher);
  void settle_comparison();
  void fail_by_contradiction();

  bool speeds_shown() const;
  std::vector<std::pair<std::string, const RequestFigures*>> timed(std::optional<uint32_t> start) const;
  Json exactness_json() const;
  Json accuracy_json() const;
  Json acceptance_json() const;
  Json request_json(const JudgedRequest& request) const;
  Json by_class_json() const;
  Json by_start_json() const;
  Json headline_json() const;
  Json answers_json() const;

  const BenchPlan& plan_;
  const BenchArm& arm_;
  const Packet& packet_;
  std::vector<StartRecord> starts_;
  std::vector<JudgedRequest> requests_;
  Json identity_ = Json::object();  // the basis that all its starts share
  RepeatTest repeat_;
  std::vector<std::string> invalid_, unproven_, not_watched_;

  std::string status_ = "unproven", reason_ = "there is no teacher", against_;  // of exactness
  uint32_t compared_ = 0, equal_ = 0;
  std::string first_difference_, contradiction_;  // from what it is compared with; of its own answers to one question
};

}  // namespace stet
