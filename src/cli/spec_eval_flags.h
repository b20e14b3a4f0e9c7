// The flags of stet spec-eval, and the manifest and run that they describe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/model_flags.h"
#include "lab/spec_eval/eval_runner.h"

namespace stet {

struct SpecEvalFlags {
  ModelFlags model;
  std::string action, argument, current, candidate, policy, contract, label, idea, out, ledger;
  std::vector<std::string> inputs, policy_files, cites;
  float scale = 1;
  std::optional<uint64_t> seed;
  bool attest = false, json = false;

  void declare(Flags& flags);
  // What contradicts itself. Throws Error(kUsage).
  void check() const;

  // Of freeze: starts every arm once and asks it who it is; no prompt exists yet. Throws Error(kUsage), Error(kInput),
  // what the engines throw.
  EvalManifest manifest(const std::string& created) const;
  // Of run: the manifest in the file `argument`, which arms and policy files must fit. Fills all but what watches it.
  EvalRun run() const;

 private:
  void check_freeze() const;
  void check_run() const;
  std::array<Options, 3> arm_options() const;
  std::vector<PolicyFile> hashed_policy_files() const;
};

// For people. The gates, the figures of both packs, the verdict.
std::string spec_eval_text(const EvalManifest& manifest, const EvalVerdict& verdict);

}  // namespace stet
