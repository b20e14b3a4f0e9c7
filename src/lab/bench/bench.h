// stet bench: a suite asked of one or two arms, and the packet of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lab/bench/arm.h"
#include "lab/bench/suite.h"
#include "lab/ledger/ledger.h"
#include "spec/sampling.h"

namespace stet {

// What decides what is asked: the same in a teacher and in what is compared with it.
struct BenchQuestions {
  Suite suite;
  uint32_t repeats = 1;  // the whole suite so often on every start, each time with nonces of its own
  uint64_t nonce_seed = 0;
  SamplingParams sampling;
  std::optional<uint32_t> max_tokens;  // no answer is longer
  bool ignore_eos = false;             // every answer is as long as it may be
};

// In the order in which they are sent. Steps of the second repeat are called "STEP#2".
std::vector<PlannedRequest> planned_requests(const BenchQuestions& questions);

struct BenchArmJob {
  std::string name;  // "A", "teacher"
  bool teacher = false;
  uint32_t starts = 1;
  bool speculative = false;
  std::string what_json;  // for the plan: what it is, without paths and hosts
  std::function<std::unique_ptr<Arm>()> open;
};

struct BenchJob {
  BenchQuestions questions;
  std::vector<BenchArmJob> arms;
  std::string teacher_packet;  // of an earlier run; empty: none
  std::string created;         // UTC
  std::string label;
};

// {"kind": "bench", ...}: frozen before anything is sent. Throws Error(kInput) for a teacher packet that is damaged,
// Error(kUsage) for one that is no teacher.
std::string bench_plan_json(const BenchJob& job);
// SHA-256 of what is measured: the same for runs that differ in date, nonce seed and label only.
std::string bench_subject_sha256(const BenchJob& job);

// The questions that a teacher packet was asked, for whoever wants to be compared with it: everything but the suite's
// steps, of which the hash is checked. Throws Error(kUsage) when it was asked another suite or another part of it,
// Error(kInput).
BenchQuestions questions_of_teacher(const std::string& packet, const Suite& suite);

struct BenchProgress {
  std::string arm;
  uint32_t start = 0, starts = 0;
  size_t request = 0, requests = 0;
  const PlannedRequest* planned = nullptr;
  const RequestRecord* record = nullptr;  // null: it is about to be sent
};

struct BenchOutcome {
  std::string results_json;   // as in the packet
  std::string packet_sha256;  // of its MANIFEST
  std::string verdict;        // "valid", "invalid", "unproven"
  std::string reason;         // the first one, for the ledger
  bool diverged = false;      // a token differs from the teacher's, or a teacher from itself
};

// One request at a time, in order, no warm-up, nothing tried again. Throws what ended it; the packet stays incomplete
// then.
BenchOutcome run_bench(const BenchJob& job, const std::string& packet, Attempt& attempt,
                       const std::function<void(const BenchProgress&)>& progress);

Outcome ledger_outcome(const BenchOutcome& outcome);

// The results as a table for people.
std::string bench_table(const std::string& results_json);

}  // namespace stet
