// The plan of a comparison: everything that decides how it runs and how it is judged, frozen before it runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/bench/suite.h"
#include "lab/compare/arm_spec.h"
#include "lab/compare/rules.h"
#include "lab/compare/statistics.h"
#include "lab/compare/witness.h"
#include "lab/ledger/ledger.h"

namespace stet {

// What the answers of both arms must have in common: nothing (two engines; each arm must then agree with itself), token
// ids (drafts), or ids and the proposals and acceptances of every cycle (kernels, threads, replay).
enum class Equal : uint8_t { nothing, ids, sequences };
std::string_view equal_name(Equal equal);
Equal parse_equal(std::string_view name);  // throws Error(kUsage)

struct Figure {
  std::string name;  // of a request: rate_100, rate_all, server_rate, wall_rate, prefill_rate, ttft; of a program: as
                     // it prints it
  bool higher_is_better = true;
};

struct PlannedStep {
  std::string id, step_class;
};

struct ComparePlan {
  std::string label, created;     // created: UTC
  bool frozen_in_a_file = false;  // by --freeze, before the command that ran it
  ArmKind a_kind = ArmKind::serve, b_kind = ArmKind::serve;
  std::string a_shown, b_shown;
  // Arms that serve: a suite. Arms that measure: points, the values for the placeholders of their commands
  // ("context=100 prompt=128"; one empty point where there are none).
  std::string suite_id, suite_sha256;
  uint32_t suite_version = 0;
  bool cold = true;
  uint64_t nonce_seed = 0;
  std::optional<uint32_t> max_tokens;  // no answer is longer; absent: the suite's
  bool ignore_eos = false;
  std::vector<PlannedStep> steps;
  std::vector<std::string> points;
  std::vector<Figure> figures;         // empty, for programs: every number whose name says its unit (figure_by_unit)
  uint32_t aa_rounds = 2, rounds = 2;  // A-A-A-A, then A-B-B-A; each round gives two pairs of starts
  // A start that lost more than 1 % of the processor to other machines is run again, up to so often for each leg; absent, in plans of
  // before: never, and no results speak of it.
  std::optional<uint32_t> disturbed_repeats;
  Equal equal = Equal::nothing;
  std::vector<Witness> witnesses;
  Bootstrap bootstrap;
  CompareRules rules;
  Authority authority = Authority::until_treatment;
  std::string idea;
  std::vector<int64_t> cites;

  bool measures() const { return a_kind == ArmKind::measure; }
};

std::string plan_json(const ComparePlan& plan);
// Throws Error(kInput) that names the member: unknown, missing, mistyped, out of range.
ComparePlan parse_plan(std::string_view json);
// SHA-256 of what is compared, on what and by which figure: the same for plans that differ in seed, date, rounds and
// rules only.
std::string subject_sha256(const ComparePlan& plan);

// A higher rate, a shorter time: by the end of the name (_per_second, _gb_s; _seconds, _ms, _us, _ns, _bytes). Nothing
// for other names.
std::optional<Figure> figure_by_unit(std::string_view name);

// One process of the run.
struct Leg {
  bool aa = false;               // of the A/A phase: the arm is A in every slot
  uint32_t round = 0, slot = 0;  // slot 0..3: sides A B B A
  bool side_b = false;           // counts as B in its pair
  char arm = 'A';
  uint32_t start = 0;  // of its arm, from 0, as if none had to be repeated
  uint32_t point = 0;  // index into points; 0 for suites
};
// In the order in which they run: A/A of every point, then A-B-B-A of every point.
std::vector<Leg> legs_of(const ComparePlan& plan);

}  // namespace stet
