// Runs an evaluation as its manifest says, and writes its packet.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lab/bench/arm.h"
#include "lab/ledger/ledger.h"
#include "lab/spec_eval/eval_verdict.h"

namespace stet {

struct EvalRun {
  EvalManifest manifest;
  std::string manifest_json;                              // the frozen bytes
  std::function<std::unique_ptr<Arm>(EvalArm)> open;      // a fresh process
  std::function<std::string()> changed;                   // which frozen file is another one now; empty: none
  CountTokens count;                                      // with the tokenizer of the arms
  std::optional<uint64_t> seed;                           // of both packs; absent: drawn as each is revealed
  std::string packet;                                     // where it goes
  std::function<bool()> stop;                             // true: the user interrupted
  std::function<void(const std::string& line)> progress;  // what is being done
};

struct EvalOutcome {
  EvalVerdict verdict;
  std::string results_json, packet_sha256;
};

// What every arm says of itself is compared with the manifest first, before a prompt exists. Then a pack is entered in
// the ledger as spent, its prompts are made, and all arms are asked; the second only where the first one holds, or in a
// screening. Throws Error(kUsage) for anything that changed since the manifest was frozen, and says whether a pack is
// spent by it; what else goes wrong. The packet stays incomplete then.
EvalOutcome run_evaluation(const EvalRun& run, Ledger& ledger, Attempt& attempt);

// What the ledger says of a verdict.
Outcome ledger_outcome(const EvalManifest& manifest, const EvalOutcome& outcome);

}  // namespace stet
