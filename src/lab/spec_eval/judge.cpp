// The results of a packet of `stet spec-eval`.
#include "lab/packet/judge.h"

#include "lab/packet/figures_json.h"
#include "lab/spec_eval/eval_verdict.h"

namespace stet {
namespace {

Json gate_json(const EvalGate& g) {
  return {{"group", gate_group_name(g.group)},
          {"name", g.name},
          {"pack", g.pack.empty() ? Json(nullptr) : Json(g.pack)},
          {"state", gate_state_name(g.state)},
          {"what", g.what}};
}

Json arm_json(const ArmPackFigures& f) {
  Json p10 = Json::object();
  for (const auto& [name, value] : f.p10) p10[name] = value;
  return {{"tokens", f.tokens},
          {"seconds", f.seconds},
          {"wall_tokens_per_second", f.wall_rate},
          {"median_decode_tokens_per_second", number_or_null(f.median_decode)},
          {"mixed_wall_tokens_per_second", number_or_null(f.mixed_wall_rate)},
          {"p10_decode_tokens_per_second", p10},
          {"emitted_per_cycle", number_or_null(f.emitted_per_cycle)},
          {"emitted_per_cycle_mixed", number_or_null(f.emitted_per_cycle_mixed)},
          {"draft_and_policy_ms", number_or_null(f.draft_and_policy_ms)},
          {"acceptance_by_position", f.acceptance_by_position}};
}

Json pack_json(const PackVerdict& p) {
  Json arms = Json::object();
  for (const EvalArm arm : kEvalArms)
    arms[std::string(eval_arm_name(arm))] = arm_json(p.arms[static_cast<size_t>(arm)]);
  return {{"pack", p.name},
          {"requests", p.requests},
          {"repeat_themselves", p.loops},
          {"candidate_over_current",
           {{"pack_wall", number_or_null(p.wall_gain)},
            {"median_decode", number_or_null(p.decode_gain)},
            {"mixed", number_or_null(p.mixed_gain)},
            {"mean_difference_tokens_per_second", number_or_null(p.mean_difference)},
            {"lower_bound_tokens_per_second", number_or_null(p.lower_bound)}}},
          {"arms", arms}};
}

Json evaluation_ledger_json(const Packet& packet) {
  for (const auto& [name, body] : packet.notes)
    if (name == "ledger") return parse_json(body, "the note of the ledger");
  return nullptr;
}

}  // namespace

std::string spec_eval_results(const Packet& packet) {
  const EvalManifest manifest = parse_manifest(packet.plan_json);
  const EvalVerdict v = judge_evaluation(manifest, packet);
  Json gates = Json::array(), packs = Json::array();
  for (const EvalGate& g : v.gates) gates.push_back(gate_json(g));
  for (const PackVerdict& p : v.packs) packs.push_back(pack_json(p));
  return dump_line({{"verdict", v.verdict},
                    {"reasons", v.reasons},
                    {"unproven", v.of_state(GateState::unproven)},
                    {"proved", v.of_state(GateState::passed)},
                    {"diverged", v.diverged},
                    {"contract", manifest.contract.id},
                    {"scale", manifest.scale},
                    {"policy", manifest.policy},
                    {"policy_inputs", manifest.policy_inputs},
                    {"attested_by_the_operator", manifest.attested ? Json(manifest.contract.attested) : Json::array()},
                    {"ledger", evaluation_ledger_json(packet)},
                    {"gates", gates},
                    {"packs", packs}});
}

}  // namespace stet
