#include "lab/spec_eval/eval_verdict.h"

#include <fmt/format.h>

#include <algorithm>

namespace stet {
namespace {

std::string shown(const EvalGate& g) {
  return fmt::format("{}{}: {}", g.name, g.pack.empty() ? "" : " of pack " + g.pack, g.what);
}

// The second pack may stay unrevealed where the first one failed: then it is still there for another candidate.
void check_packs(const EvalManifest& manifest, const EvalEvidence& evidence, EvalVerdict& v) {
  const size_t run = evidence.packs.size(), wanted = manifest.contract.packs.size();
  if (run >= wanted) return;
  const bool failed = std::any_of(v.gates.begin(), v.gates.end(), [](const EvalGate& g) {
    return g.state == GateState::failed && g.group != GateGroup::development;
  });
  v.gates.push_back({GateGroup::hard, "both_packs", "", failed ? GateState::failed : GateState::unproven,
                     fmt::format("{} of {} packs were run{}", run, wanted,
                                 failed ? ": the first one failed, so the second was not revealed" : "")});
}

}  // namespace

std::string_view gate_state_name(GateState state) {
  constexpr std::string_view kNames[] = {"passed", "failed", "unproven"};
  return kNames[static_cast<size_t>(state)];
}

std::string_view gate_group_name(GateGroup group) {
  constexpr std::string_view kNames[] = {"hard", "development", "promotion"};
  return kNames[static_cast<size_t>(group)];
}

std::vector<std::string> EvalVerdict::of_state(GateState state) const {
  std::vector<std::string> sentences;
  for (const EvalGate& g : gates)
    if (g.state == state) sentences.push_back(shown(g));
  return sentences;
}

bool EvalVerdict::unproven() const {
  return std::any_of(gates.begin(), gates.end(), [](const EvalGate& g) {
    return g.state == GateState::unproven && g.group != GateGroup::development;
  });
}

EvalVerdict judge_evaluation(const EvalManifest& manifest, const Packet& packet) {
  EvalVerdict v;
  v.verdict = "void";
  if (packet.starts.empty()) {
    v.reasons.emplace_back("nothing was measured");
    return v;
  }
  const EvalEvidence evidence = collect_evidence(manifest, packet);
  v.reasons = evidence.faults;
  judge_exactness(manifest, evidence, v.gates);
  v.diverged =
      std::any_of(v.gates.begin(), v.gates.end(), [](const EvalGate& g) { return g.state == GateState::failed; });
  if (!v.reasons.empty()) {
    v.gates.clear();
    return v;
  }
  const bool exact = v.gates.front().state == GateState::passed && !v.diverged;
  judge_conduct(manifest, evidence, v.gates);
  if (exact) {
    for (const PackEvidence& e : evidence.packs) v.packs.push_back(pack_figures(manifest, e));
    judge_speed(manifest, v.packs, v.gates);
  }
  check_packs(manifest, evidence, v);
  // Development gates say whether work goes on, not what may be used.
  for (const EvalGate& g : v.gates)
    if (g.state == GateState::failed && g.group != GateGroup::development) v.reasons.push_back(shown(g));
  const bool holds = exact && v.reasons.empty() && !v.unproven();
  v.verdict = manifest.screening() ? "screening" : holds ? "promoted" : "not promoted";
  return v;
}

}  // namespace stet
