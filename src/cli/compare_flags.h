// The flags of stet compare, and the plan that they describe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/flags.h"
#include "lab/compare/runner.h"

namespace stet {

struct CompareFlags {
  std::string a, b, suite, steps, points, rules, plan_file, freeze, out, equal, authority = "until-treatment";
  std::string label, idea, ledger, key_file, model_id;
  std::vector<std::string> figures, witnesses, cites;
  uint32_t rounds = 2, aa_rounds = 0, disturbed_repeats = 3, resamples = 10000, max_tokens = 0, ready = 600, timeout = 3600;
  float confidence = 0.95f;
  std::optional<uint64_t> seed;
  bool ignore_eos = false, json = false, quiet = false;

  void declare(Flags& flags);
  // What contradicts itself. flags: what was parsed. Throws Error(kUsage).
  void check(const Flags& flags) const;

  // The frozen plan: that of --plan, which arms and suite must fit, or a new one. Fills all of `run` but what watches
  // it. Throws Error(kUsage), Error(kInput).
  CompareRun run(const std::string& created) const;

 private:
  void declare_plan(Flags& flags);
  ComparePlan new_plan(const ArmSpec& spec_a, const ArmSpec& spec_b, const std::optional<BenchQuestions>& questions,
                       const std::string& created) const;
  void take_figures(ComparePlan& plan) const;
  BenchQuestions questions_of(const std::string& suite_name, uint64_t nonce_seed) const;
  BenchQuestions questions_of_plan(const ComparePlan& plan) const;
};

// What answers of arms that differ in these options must have in common: sequences where only kernels, threads and
// replay differ, ids where drafts do, nothing where the numbers themselves do.
Equal usual_equal(const ArmSpec& a, const ArmSpec& b);

}  // namespace stet
