// The raw events of an evaluation, sorted: by pack, arm and step.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "lab/metrics/metrics.h"
#include "lab/spec_eval/eval_steps.h"

namespace stet {

struct StepAnswer {
  const RequestRecord* record = nullptr;
  RequestFigures figures;
  std::vector<int32_t> ids;
};

struct PackEvidence {
  RevealedPack pack;
  std::vector<EvalStep> steps;
  std::array<std::vector<StepAnswer>, 3> answers;  // of each arm; as many as steps, in their order
  std::vector<bool> loops;  // of each request: the target's own answer is a repetition loop, so nobody's rate counts

  const std::vector<StepAnswer>& of(EvalArm arm) const { return answers[static_cast<size_t>(arm)]; }
};

struct EvalEvidence {
  std::vector<PackEvidence> packs;  // those that all three arms answered completely
  std::vector<std::string>
      faults;  // why the run says nothing: a start or an answer is missing, out of order or invalid
};

// Keeps pointers into the packet.
EvalEvidence collect_evidence(const EvalManifest& manifest, const Packet& packet);

// The launch order of a pack: that of kEvalArms, in the second pack backwards.
std::array<EvalArm, 3> launch_order(size_t pack);

}  // namespace stet
