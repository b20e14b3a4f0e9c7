// Whether the tokens are the target's own, whatever was asked before.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lab/metrics/acceptance.h"
#include "lab/metrics/exactness.h"
#include "lab/spec_eval/eval_verdict.h"

namespace stet {
namespace {

// How many answers were compared, and the first that differs or cannot be compared.
struct Comparison {
  uint32_t compared = 0, equal = 0, unknown = 0;
  std::string first;

  void add(const StepAnswer& expected, const StepAnswer& found, const std::string& where) {
    ++compared;
    if (!ids_known(*expected.record) || !ids_known(*found.record)) {
      ++unknown;
      return;
    }
    const bool prefix = expected.record->cancelled_by_client || found.record->cancelled_by_client;
    const bool same_ids = expected.record->prompt_token_ids == found.record->prompt_token_ids;
    const auto difference = first_difference(expected.ids, found.ids, prefix);
    if (!difference && same_ids) {
      ++equal;
      return;
    }
    if (first.empty()) first = where + (same_ids ? ", " + shown(*difference) : ": the prompts have other ids");
  }

  EvalGate gate(const char* name, const char* what) const {
    const bool differs = compared > equal + unknown;
    const GateState state = differs                        ? GateState::failed
                            : unknown > 0 || compared == 0 ? GateState::unproven
                                                           : GateState::passed;
    std::string text = fmt::format("{} of {} {}", equal, compared, what);
    if (unknown > 0) text += fmt::format("; {} have no ids", unknown);
    if (differs) text += "; first difference: " + first;
    return {GateGroup::hard, name, "", state, text};
  }
};

std::string where_of(const StepAnswer& a) { return fmt::format("{}, step '{}'", a.record->arm, a.record->step_id); }

EvalGate parity(const EvalEvidence& evidence) {
  Comparison c;
  for (const PackEvidence& e : evidence.packs)
    for (const EvalArm arm : {EvalArm::current, EvalArm::candidate})
      for (size_t i = 0; i < e.steps.size(); ++i) c.add(e.of(EvalArm::target)[i], e.of(arm)[i], where_of(e.of(arm)[i]));
  return c.gate("parity", "greedy answers are the target's, token by token");
}

// The first timed answer to every request, by arm; everything else that asks the same must repeat it.
EvalGate repeats(const EvalEvidence& evidence, bool after_cancel) {
  Comparison c;
  for (const PackEvidence& e : evidence.packs)
    for (const EvalArm arm : kEvalArms) {
      const auto& answers = e.of(arm);
      std::map<size_t, const StepAnswer*> first;
      for (size_t i = 0; i < answers.size(); ++i) {
        const bool wanted = (e.steps[i].kind == StepKind::after_cancel) == after_cancel;
        const auto [known, is_new] = first.try_emplace(e.steps[i].request, &answers[i]);
        if (!is_new && wanted) c.add(*known->second, answers[i], where_of(answers[i]));
      }
    }
  return after_cancel ? c.gate("reset", "answers behind one that was left are as before")
                      : c.gate("state", "answers are the same when they are asked again on one process");
}

EvalGate cancelled(const EvalEvidence& evidence) {
  uint32_t asked = 0, left = 0;
  for (const PackEvidence& e : evidence.packs)
    for (const EvalArm arm : kEvalArms)
      for (size_t i = 0; i < e.steps.size(); ++i) {
        if (e.steps[i].kind != StepKind::cancelled) continue;
        ++asked;
        left += e.of(arm)[i].record->cancelled_by_client;
      }
  return {GateGroup::hard, "cancel", "", left == asked && asked > 0 ? GateState::passed : GateState::unproven,
          fmt::format("{} of {} starts had a request that was left after {} tokens", left, asked, kCancelAfterTokens)};
}

// Of the candidate: an answer that ended by itself in front of another one.
EvalGate early_end(const EvalEvidence& evidence) {
  uint32_t early = 0;
  for (const PackEvidence& e : evidence.packs) {
    const auto& answers = e.of(EvalArm::candidate);
    for (size_t i = 0; i + 1 < answers.size(); ++i)
      early += answers[i].record->finish_reason == "stop" && answers[i].ids.size() < answers[i].record->max_tokens;
  }
  return {GateGroup::hard, "early_end", "", early > 0 ? GateState::passed : GateState::unproven,
          fmt::format("{} answers of the candidate ended before their limit, with another one behind", early)};
}

EvalGate logprobs(const EvalManifest& manifest, const EvalEvidence& evidence) {
  uint32_t positions = 0;
  std::string first;
  for (const PackEvidence& e : evidence.packs)
    for (size_t i = 0; i < e.steps.size(); ++i) {
      if (e.steps[i].kind != StepKind::logprobs) continue;
      const auto values = [&](EvalArm arm) {
        std::vector<double> all;
        for (const ChunkEvent& c : e.of(arm)[i].record->chunks)
          if (c.logprobs) all.insert(all.end(), c.logprobs->begin(), c.logprobs->end());
        return all;
      };
      const auto of_target = values(EvalArm::target), of_candidate = values(EvalArm::candidate);
      for (size_t k = 0; k < std::min(of_target.size(), of_candidate.size()); ++k) {
        ++positions;
        if (of_target[k] != of_candidate[k] && first.empty())
          first = fmt::format("step '{}', position {}: {} and {}", e.steps[i].id, k, of_target[k], of_candidate[k]);
      }
    }
  const uint32_t wanted = manifest.contract.logprob_positions;
  const GateState state = !first.empty()        ? GateState::failed
                          : positions >= wanted ? GateState::passed
                                                : GateState::unproven;
  std::string text = fmt::format(
      "the target's log-probability is the same in the candidate at {} positions ({} wanted)", positions, wanted);
  if (!first.empty()) text = "the target's log-probabilities differ in the candidate: " + first;
  return {GateGroup::hard, "target_logprobs", "", state, text};
}

}  // namespace

void judge_exactness(const EvalManifest& manifest, const EvalEvidence& evidence, std::vector<EvalGate>& gates) {
  gates.push_back(parity(evidence));
  gates.push_back(repeats(evidence, false));
  gates.push_back(repeats(evidence, true));
  gates.push_back(cancelled(evidence));
  gates.push_back(early_end(evidence));
  gates.push_back(logprobs(manifest, evidence));
}

}  // namespace stet
