// Runs a comparison as its plan says, and writes its packet.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lab/bench/bench.h"
#include "lab/compare/plan.h"
#include "lab/compare/served_arm.h"
#include "lab/compare/verdict.h"
#include "lab/ledger/ledger.h"
#include "lab/metrics/system.h"

namespace stet {

struct CompareRun {
  ComparePlan plan;       // its arms are a.shown and b.shown
  std::string plan_json;  // the frozen bytes
  ArmSpec a, b;
  std::optional<BenchQuestions> questions;  // of arms that serve
  std::string packet;                       // where it goes
  ServedArmOptions options;
  std::function<void(const std::string& line)> progress;  // what is being done
  // The machine's counters around a program; for tests another machine's.
  std::function<SystemSample()> sample = [] { return sample_system(); };
  // Told once, between the phases: what identical arms showed.
  std::function<void(const std::vector<JudgedSeries>& floors)> floor;
};

struct CompareOutcome {
  CompareVerdict verdict;
  std::string results_json, packet_sha256;
};

// Throws what goes wrong; the attempt has been told then, and the packet stays incomplete. An A/A phase that is not
// valid ends it before the treatment: there is no use in measuring on.
CompareOutcome run_comparison(const CompareRun& run, Attempt& attempt);

// What the ledger says of a verdict.
Outcome ledger_outcome(const ComparePlan& plan, const CompareVerdict& verdict, const std::string& packet_sha256);

}  // namespace stet
