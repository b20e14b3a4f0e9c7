// The results of a packet of `stet compare`.
#include "lab/packet/judge.h"

#include "lab/compare/verdict.h"
#include "base/strict_json.h"

namespace stet {
namespace {

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json phase_json(const std::vector<double>& pair_ratios, const PhaseFigures& p, const Bootstrap& bootstrap) {
  Json prompts = Json::array();
  for (const PromptRatio& r : p.prompts) prompts.push_back({{"id", r.id}, {"class", r.step_class}, {"ratio", r.ratio}});
  return {{"a_median", p.a_median},
          {"b_median", p.b_median},
          {"ratio", p.ratio},
          {"interval", {p.interval.low, p.interval.high}},
          {"confidence", p.interval.covers ? Json(bootstrap.confidence) : Json(nullptr)},
          {"pair_ratios", pair_ratios},
          {"pair_wins", p.pair_wins},
          {"prompts", prompts},
          {"a_worst_start", p.a_worst_start},
          {"b_worst_start", p.b_worst_start},
          {"saving_ms", or_null(p.saving_ms)}};
}

Json series_json(const JudgedSeries& s, const Bootstrap& bootstrap) {
  return {{"point", s.point},
          {"figure", s.figure.name},
          {"better", s.figure.higher_is_better ? "higher" : "lower"},
          {"noise_floor", s.noise.floor},
          {"smallest_detectable_effect", s.noise.smallest_effect},
          {"aa", phase_json(s.aa.pair_ratios, s.aa, bootstrap)},
          {"ab", phase_json(s.ab.pair_ratios, s.ab, bootstrap)},
          {"promoted", s.short_of.empty()},
          {"short_of", s.short_of}};
}

Json arm_json(const ArmSummary& a, const std::string& shown) {
  const bool cycles = a.cycles > 0;
  return {{"shown", shown},
          {"starts", a.starts},
          {"fresh_starts", a.fresh},
          {"requests", a.requests},
          {"tokens", a.tokens},
          {"cycles", a.cycles},
          {"proposed", a.proposed},
          {"accepted", a.accepted},
          {"tokens_per_cycle",
           cycles ? Json(static_cast<double>(a.emitted) / static_cast<double>(a.cycles)) : Json(nullptr)},
          {"acceptance_by_position", a.acceptance_by_position}};
}

Json equality_json(const ComparePlan& plan, const Equality& e) {
  if (plan.measures()) return nullptr;
  return {{"asked", equal_name(plan.equal)}, {"proved", e.proved}, {"basis", e.basis},
          {"compared", e.compared},          {"equal", e.equal},   {"faults", e.faults},
          {"unproven", e.unproven}};
}

Json ledger_json(const Packet& packet) {
  for (const auto& [name, body] : packet.notes)
    if (name == "ledger") return parse_json(body, "the note of the ledger");
  return nullptr;
}

}  // namespace

std::string compare_results(const Packet& packet) {
  const ComparePlan plan = parse_plan(packet.plan_json);
  const CompareVerdict v = judge_comparison(plan, packet);
  Json witnesses = Json::array(), series = Json::array(), repeated = Json::array();
  for (const WitnessCount& w : v.witnesses)
    witnesses.push_back({{"option", w.witness.option},
                         {"counter", w.witness.counter},
                         {"control", or_null(w.control)},
                         {"candidate", or_null(w.candidate)},
                         {"holds", w.holds()}});
  for (const JudgedSeries& s : v.series) series.push_back(series_json(s, plan.bootstrap));
  for (const RepeatedStart& r : v.repeated) repeated.push_back({{"arm", r.arm}, {"start", r.start}, {"why", r.why}});
  Json out = {{"verdict", v.verdict},
                    {"reasons", v.reasons},
                    {"unproven", v.unproven},
                    {"evidence", plan.measures() ? "component" : "endpoint"},
                    {"frozen", plan.frozen_in_a_file ? "in a file" : "at the start"},
                    {"authority", authority_name(plan.authority)},
                    {"ledger", ledger_json(packet)},
                    {"equality", equality_json(plan, v.equality)},
                    {"witnesses", witnesses},
                    {"arms", {{"A", arm_json(v.a, plan.a_shown)}, {"B", arm_json(v.b, plan.b_shown)}}},
                    {"series", series}};
  if (plan.disturbed_repeats) out["repeated_starts"] = repeated;
  return dump_line(out);
}

}  // namespace stet
