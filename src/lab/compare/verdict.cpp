#include "lab/compare/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "lab/metrics/acceptance.h"
#include "lab/metrics/system.h"

namespace stet {
namespace {

const StartRecord* find_start(const Packet& packet, const Leg& leg) {
  for (const StartRecord& s : packet.starts)
    if (s.arm == std::string(1, leg.arm) && s.start == leg.start) return &s;
  return nullptr;
}

// Every leg of the plan has run, in the plan's order, with everything that it had to answer.
void check_legs(const ComparePlan& plan, const Packet& packet, std::vector<std::string>& reasons) {
  const std::vector<Leg> legs = legs_of(plan);
  if (packet.starts.size() != legs.size())
    reasons.push_back(fmt::format("{} of {} starts of the plan were run", packet.starts.size(), legs.size()));
  const StartRecord* before = nullptr;
  for (const Leg& leg : legs) {
    const StartRecord* start = find_start(packet, leg);
    if (start == nullptr) continue;
    if (before != nullptr && start->client_ns < before->client_ns)
      reasons.push_back(fmt::format("start {} of arm {} ran before start {} of arm {}, against the plan", start->start,
                                    start->arm, before->start, before->arm));
    before = start;
    std::vector<std::string> answered;
    for (const RequestRecord& r : packet.requests)
      if (r.arm == start->arm && r.start == start->start) answered.push_back(r.step_id);
    const auto in_order = [&](const PlannedStep& s, const std::string& id) { return s.id == id; };
    if (!plan.measures() &&
        !std::equal(plan.steps.begin(), plan.steps.end(), answered.begin(), answered.end(), in_order))
      reasons.push_back(
          fmt::format("start {} of arm {} did not answer the {} steps of the plan, once each and in order",
                      start->start, start->arm, plan.steps.size()));
  }
}

bool proposes(const ComparePlan& plan, const std::string& arm) {
  return arm == "B" && std::any_of(plan.witnesses.begin(), plan.witnesses.end(), [](const Witness& w) {
           return w.counter == "proposed" || w.counter == "accepted" || w.counter.starts_with("deeper:");
         });
}

// A reason that many requests share is told once, with their number.
void add_counted(const std::map<std::string, uint32_t>& counts, const std::map<std::string, std::string>& first,
                 std::vector<std::string>& out) {
  for (const auto& [reason, n] : counts)
    out.push_back(n == 1 ? fmt::format("{} ({})", reason, first.at(reason))
                         : fmt::format("{} ({} and {} more)", reason, first.at(reason), n - 1));
}

std::vector<RequestFigures> check_requests(const ComparePlan& plan, const Packet& packet, CompareVerdict& v) {
  std::vector<RequestFigures> all;
  std::map<std::string, uint32_t> invalid, unproven;
  std::map<std::string, std::string> first;
  const auto count = [&](std::map<std::string, uint32_t>& counts, const std::string& reason, const RequestRecord& r) {
    ++counts[reason];
    first.emplace(reason, fmt::format("arm {}, start {}, step '{}'", r.arm, r.start, r.step_id));
  };
  std::set<std::string> seen;
  for (const RequestRecord& r : packet.requests) {
    all.push_back(request_figures(r, {.cold = plan.cold, .fixed_length = false, .speculative = proposes(plan, r.arm)}));
    for (const std::string& reason : all.back().invalid) count(invalid, reason, r);
    for (const std::string& reason : all.back().unproven) count(unproven, reason, r);
    if (plan.cold && !seen.insert(fmt::format("{} {} {}", r.arm, r.start, r.prompt)).second)
      count(invalid, "repeated prompts: one start saw this prompt before", r);
  }
  add_counted(invalid, first, v.reasons);
  add_counted(unproven, first, v.unproven);
  return all;
}

void check_machine(const Packet& packet, std::vector<std::string>& reasons) {
  for (const MeasureRecord& m : packet.measures)
    for (const std::string& fault : system_changes(m.before, m.after).faults)
      reasons.push_back(fmt::format("{} (arm {}, start {})", fault, m.arm, m.start));
}

void check_witnesses(const ComparePlan& plan, const Packet& packet, CompareVerdict& v) {
  for (const Witness& w : plan.witnesses) {
    v.witnesses.push_back({w, count_witness(w.counter, packet, "A"), count_witness(w.counter, packet, "B")});
    const WitnessCount& c = v.witnesses.back();
    if (!c.control || !c.candidate)
      v.reasons.push_back(
          fmt::format("the witness {} of {} is not reported by arm {}", w.counter, w.option, c.control ? "B" : "A"));
    else if (!(*c.candidate > 0))
      v.reasons.push_back(
          fmt::format("the witness {} of {} is 0 in the candidate: the treatment never happened", w.counter, w.option));
    else if (*c.control != 0)
      v.reasons.push_back(fmt::format("the witness {} of {} is {} in the control: the control was treated", w.counter,
                                      w.option, *c.control));
  }
  // Two different programs are the treatment themselves; one program twice needs a witness of what differs.
  const auto program = [](const std::string& shown) { return shown.substr(0, shown.find(' ')); };
  const bool same_program = plan.a_kind == plan.b_kind && program(plan.a_shown) == program(plan.b_shown);
  if (plan.witnesses.empty() && same_program && plan.a_shown != plan.b_shown)
    v.unproven.emplace_back("no witness shows that what differs between the arms did anything");
}

ArmSummary summary_of(const Packet& packet, const std::string& arm) {
  ArmSummary s;
  AcceptanceCounts counts;
  for (const StartRecord& start : packet.starts) {
    if (start.arm != arm) continue;
    ++s.starts;
    s.fresh += start.fresh;
  }
  for (const RequestRecord& r : packet.requests) {
    if (r.arm != arm) continue;
    ++s.requests;
    s.tokens += r.token_ids().size();
    counts.add(r);
  }
  s.cycles = counts.cycles;
  s.proposed = counts.proposed;
  s.accepted = counts.accepted;
  s.emitted = counts.emitted;
  s.acceptance_by_position = counts.by_position();
  return s;
}

double acceptance(const ArmSummary& s) {
  return s.proposed == 0 ? 0.0 : static_cast<double>(s.accepted) / static_cast<double>(s.proposed);
}

void judge_series(const ComparePlan& plan, const std::vector<Series>& all, CompareVerdict& v) {
  for (const Series& s : all) {
    JudgedSeries j{
        s.point, s.figure, phase_figures(s.aa, s.figure, plan.bootstrap), phase_figures(s.ab, s.figure, plan.bootstrap),
        {},      {}};
    j.noise = noise_of(j.aa.pair_ratios, j.aa.interval);
    j.short_of = shortcomings(plan, j);
    const std::string where = s.point.empty() ? s.figure.name : fmt::format("{} at '{}'", s.figure.name, s.point);
    for (const std::string& reason : j.short_of) v.reasons.push_back(where + ": " + reason);
    v.series.push_back(std::move(j));
  }
  const auto& drift = plan.rules.maximum_acceptance_drift;
  if (drift && std::abs(acceptance(v.b) - acceptance(v.a)) > *drift)
    v.reasons.push_back(fmt::format("the acceptance rate moved from {:.6f} to {:.6f}, more than {}", acceptance(v.a),
                                    acceptance(v.b), *drift));
}

// Milliseconds that B saves per target pass: medians over prompts and pairs.
std::optional<double> saving_per_cycle(const ComparePlan& plan, const Packet& packet,
                                       const std::vector<RequestFigures>& figures) {
  std::map<std::string, std::vector<double>> ms[2];
  for (size_t i = 0; i < packet.requests.size(); ++i)
    if (const auto& rate = figures[i].target_passes_per_second; rate && *rate > 0)
      ms[packet.requests[i].arm == "B"][packet.requests[i].step_id].push_back(1000.0 / *rate);
  std::vector<double> savings;
  for (const PlannedStep& step : plan.steps)
    if (ms[0].count(step.id) > 0 && ms[1].count(step.id) > 0)
      savings.push_back(median_of(ms[0][step.id]) - median_of(ms[1][step.id]));
  return savings.empty() ? std::nullopt : std::optional(median_of(savings));
}

void judge_saving_per_cycle(const ComparePlan& plan, const Packet& packet, const std::vector<RequestFigures>& figures,
                            CompareVerdict& v) {
  const auto& minimum = plan.rules.minimum_saving_ms_per_cycle;
  if (!minimum) return;
  const auto saving = saving_per_cycle(plan, packet, figures);
  if (!saving)
    v.unproven.emplace_back("the saving per target pass: the servers do not report their cycles");
  else if (*saving < *minimum)
    v.reasons.push_back(fmt::format("it saves {:.6g} ms per target pass, and the rules demand {}", *saving, *minimum));
}

}  // namespace

std::vector<std::string> shortcomings(const ComparePlan& plan, const JudgedSeries& s) {
  std::vector<std::string> reasons;
  const CompareRules& rules = plan.rules;
  const PhaseFigures& ab = s.ab;
  if (!ab.interval.covers)
    reasons.push_back(fmt::format("too few {} for an interval", ab.prompts.empty() ? "pairs" : "prompts"));
  if (!(ab.interval.low > 1))
    reasons.push_back(
        fmt::format("the interval {:.4f} .. {:.4f} does not exclude 1", ab.interval.low, ab.interval.high));
  if (!(ab.ratio - 1 > s.noise.smallest_effect))
    reasons.push_back(fmt::format("the ratio {:.4f} is within the smallest effect that the A/A run can tell, {:.4f}",
                                  ab.ratio, s.noise.smallest_effect));
  const auto slower = std::count_if(ab.pair_ratios.begin(), ab.pair_ratios.end(), [](double r) { return !(r > 1); });
  if (rules.every_pair && slower > 0)
    reasons.push_back(fmt::format("B is no better in {} of {} pairs of starts", slower, ab.pair_ratios.size()));
  if (rules.minimum_ratio && ab.ratio < *rules.minimum_ratio)
    reasons.push_back(fmt::format("the ratio {:.4f} is below the demanded {}", ab.ratio, *rules.minimum_ratio));
  const auto better = [&](double x, double y) { return s.figure.higher_is_better ? x > y : x < y; };
  if (rules.lower_start && !better(ab.b_worst_start, ab.a_worst_start))
    reasons.push_back(fmt::format("the worst start of B ({:.6g}) is no better than the worst of A ({:.6g})",
                                  ab.b_worst_start, ab.a_worst_start));
  if (rules.minimum_figure && !better(ab.b_worst_start, *rules.minimum_figure))
    reasons.push_back(
        fmt::format("the worst start of B ({:.6g}) does not beat {}", ab.b_worst_start, *rules.minimum_figure));
  if (rules.minimum_saving_ms_per_token && ab.saving_ms.value_or(0) < *rules.minimum_saving_ms_per_token)
    reasons.push_back(fmt::format("it saves {:.6g} ms a token, and the rules demand {}", ab.saving_ms.value_or(0),
                                  *rules.minimum_saving_ms_per_token));
  if (!rules.minimum_wins) return reasons;
  if (ab.prompts.empty()) {
    const auto wins = static_cast<uint32_t>(ab.pair_ratios.size() - slower);
    if (wins < *rules.minimum_wins)
      reasons.push_back(fmt::format("B wins {} of {} pairs, and the rules demand {}", wins, ab.pair_ratios.size(),
                                    *rules.minimum_wins));
    return reasons;
  }
  for (size_t i = 0; i < ab.pair_wins.size(); ++i)
    if (ab.pair_wins[i] < *rules.minimum_wins)
      reasons.push_back(fmt::format("B wins {} of {} prompts in pair {}, and the rules demand {}", ab.pair_wins[i],
                                    ab.prompts.size(), i, *rules.minimum_wins));
  return reasons;
}

CompareVerdict judge_comparison(const ComparePlan& plan, const Packet& all) {
  CompareVerdict v;
  v.verdict = "void";
  CountedRun counted = counted_run(plan, all);
  v.repeated = std::move(counted.repeated);
  const Packet& packet = counted.packet;
  if (packet.starts.empty()) {
    v.reasons.emplace_back("nothing was measured");
    return v;
  }
  v.a = summary_of(packet, "A");
  v.b = summary_of(packet, "B");
  check_legs(plan, packet, v.reasons);
  const std::vector<RequestFigures> figures = check_requests(plan, packet, v);
  check_machine(packet, v.reasons);
  check_witnesses(plan, packet, v);
  if (!plan.measures()) {
    // Also of the starts that do not count: what disturbs a machine changes no token.
    v.equality = judge_equality(plan, all);
    v.reasons.insert(v.reasons.end(), v.equality.faults.begin(), v.equality.faults.end());
  }
  std::vector<std::string> faults;
  const std::vector<Series> series = series_of(plan, packet, figures, Phases::both, faults);
  v.reasons.insert(v.reasons.end(), faults.begin(), faults.end());
  if (!v.reasons.empty()) return v;
  v.unproven.insert(v.unproven.end(), v.equality.unproven.begin(), v.equality.unproven.end());
  // Speed without exactness has no number.
  if (plan.measures() || v.equality.proved) judge_series(plan, series, v);
  judge_saving_per_cycle(plan, packet, figures, v);
  v.verdict = v.reasons.empty() && v.unproven.empty() ? "promoted" : "not promoted";
  return v;
}

AaPhase judge_aa(const ComparePlan& plan, const Packet& all) {
  CompareVerdict v;
  const Packet packet = counted_run(plan, all).packet;
  const std::vector<RequestFigures> figures = check_requests(plan, packet, v);
  check_machine(packet, v.reasons);
  Equality equality;
  if (!plan.measures()) judge_repeats(plan, all, "A", equality);
  AaPhase phase;
  phase.faults = std::move(v.reasons);
  phase.faults.insert(phase.faults.end(), equality.faults.begin(), equality.faults.end());
  const std::vector<Series> series = series_of(plan, packet, figures, Phases::aa_only, phase.faults);
  if (!phase.faults.empty()) return phase;
  for (const Series& s : series) {
    JudgedSeries j{s.point, s.figure, phase_figures(s.aa, s.figure, plan.bootstrap), {}, {}, {}};
    j.noise = noise_of(j.aa.pair_ratios, j.aa.interval);
    phase.series.push_back(std::move(j));
  }
  return phase;
}

}  // namespace stet
