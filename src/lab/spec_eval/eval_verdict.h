// The verdict of an evaluation, from its raw events: what `stet spec-eval run` prints and `stet verify` recomputes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/spec_eval/evidence.h"

namespace stet {

enum class GateState : uint8_t { passed, failed, unproven };
std::string_view gate_state_name(GateState state);
enum class GateGroup : uint8_t { hard, development, promotion };
std::string_view gate_group_name(GateGroup group);

// One demand of the contract.
struct EvalGate {
  GateGroup group = GateGroup::hard;
  std::string name, pack;  // pack: empty where it is about all of them
  GateState state = GateState::unproven;
  std::string what;  // with the numbers
};

// What one arm did with a pack. Speeds: over timed requests whose answer is no loop, both repetitions.
struct ArmPackFigures {
  uint64_t tokens = 0;
  double seconds = 0;
  double wall_rate = 0;                             // tokens / seconds of all of them
  std::optional<double> median_decode;              // over requests
  std::optional<double> mixed_wall_rate;            // of the category "mixed"
  std::vector<std::pair<std::string, double>> p10;  // of decode rates, by class
  std::optional<double> emitted_per_cycle, emitted_per_cycle_mixed, draft_and_policy_ms;
  std::vector<double> acceptance_by_position;
};

struct PackVerdict {
  std::string name;
  uint32_t requests = 0, loops = 0;
  std::array<ArmPackFigures, 3> arms;
  std::optional<double> wall_gain, decode_gain, mixed_gain;  // of the candidate over the current policy: 0.05 is 5 %
  std::optional<double> mean_difference, lower_bound;        // tokens a second, of the wall rates of the same request
};

struct EvalVerdict {
  std::string verdict;               // "promoted", "not promoted", "screening", "void"
  std::vector<std::string> reasons;  // why it is void or a gate failed
  std::vector<EvalGate> gates;       // empty where it is void
  std::vector<PackVerdict> packs;    // empty where it is void or not exact: no speed without exactness
  bool diverged = false;             // a token is not the target's, or an arm does not repeat itself

  std::vector<std::string> of_state(GateState state) const;  // the sentences of gates
  bool unproven() const;  // a gate that promotion needs was neither passed nor failed
  // Whether nothing failed in what has been run so far.
  bool holds() const { return reasons.empty(); }
};

// Pure: from the manifest and the events alone.
EvalVerdict judge_evaluation(const EvalManifest& manifest, const Packet& packet);

// Its parts. Each adds gates.
void judge_exactness(const EvalManifest& manifest, const EvalEvidence& evidence, std::vector<EvalGate>& gates);
void judge_conduct(const EvalManifest& manifest, const EvalEvidence& evidence, std::vector<EvalGate>& gates);
PackVerdict pack_figures(const EvalManifest& manifest, const PackEvidence& pack);
void judge_speed(const EvalManifest& manifest, const std::vector<PackVerdict>& packs, std::vector<EvalGate>& gates);

}  // namespace stet
