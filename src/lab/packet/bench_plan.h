// What the judge of benchmarks reads of a plan; whatever else a plan holds is kept and not looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/strict_json.h"

namespace stet {

struct BenchStep {
  std::string id, step_class;
  std::optional<std::string> expect;  // what a perfect model would answer
};

struct BenchArm {
  std::string name;
  bool teacher = false;  // role "teacher": a plain decoder, which proves itself by its repeat test; else "candidate"
  uint32_t starts = 1;
  bool speculative = false;
  bool fixed_length = false;
};

struct BenchPlan {
  Json suite;  // id, version, sha256, cold, repeats_allowed, without the steps
  bool cold = true, repeats_allowed = false;
  std::vector<BenchStep> steps;
  std::vector<BenchArm> arms;
  std::string teacher_manifest;  // of an earlier packet; empty: none

  const BenchArm* teacher_arm() const;  // null: none
};

// Throws Error(kInput) naming the member: missing, mistyped, a doubled step or arm, two teachers, a speculative
// teacher.
BenchPlan read_bench_plan(std::string_view plan_json);

}  // namespace stet
