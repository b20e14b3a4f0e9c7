// How fast it was: figures of a pack, and the gates over them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lab/compare/statistics.h"
#include "lab/metrics/acceptance.h"
#include "lab/spec_eval/eval_verdict.h"

namespace stet {
namespace {

constexpr const char* kMixed = "mixed";
constexpr const char* kNoTarget = "nothing was measured";

// What the repetitions of one request gave on one arm.
struct RequestSpeed {
  uint64_t tokens = 0;
  double seconds = 0;
  std::vector<double> decode;

  double wall_rate() const { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }
};

std::map<size_t, RequestSpeed> speeds_of(const PackEvidence& pack, EvalArm arm) {
  std::map<size_t, RequestSpeed> speeds;
  for (size_t i = 0; i < pack.steps.size(); ++i) {
    const EvalStep& step = pack.steps[i];
    if (step.kind != StepKind::timed || pack.loops[step.request]) continue;
    const StepAnswer& a = pack.of(arm)[i];
    RequestSpeed& s = speeds[step.request];
    s.tokens += a.ids.size();
    s.seconds += static_cast<double>(a.record->end_ns - a.record->sent_ns) / 1e9;
    if (a.figures.all) s.decode.push_back(a.figures.all->interval_rate);
  }
  return speeds;
}

std::optional<double> rate_of(const std::map<size_t, RequestSpeed>& speeds, const PackEvidence& pack,
                              const std::string& category) {
  RequestSpeed sum;
  for (const auto& [request, s] : speeds)
    if (category.empty() || class_of(pack.pack.requests[request]) == category) {
      sum.tokens += s.tokens;
      sum.seconds += s.seconds;
    }
  return sum.seconds > 0 ? std::optional(sum.wall_rate()) : std::nullopt;
}

void add_decode(const std::map<size_t, RequestSpeed>& speeds, const PackEvidence& pack, ArmPackFigures& f) {
  std::map<std::string, std::vector<double>> by_class;
  std::vector<double> all;
  for (const auto& [request, s] : speeds) {
    if (s.decode.empty()) continue;
    const double rate = statistics(s.decode).mean;
    all.push_back(rate);
    by_class[class_of(pack.pack.requests[request])].push_back(rate);
  }
  if (!all.empty()) f.median_decode = median_of(all);
  for (auto& [name, rates] : by_class) {
    std::sort(rates.begin(), rates.end());
    f.p10.emplace_back(name, quantile_of(rates, 0.1));
  }
}

// Cycles of timed requests, loops left out. The first cycle of an answer holds the draft's own pass over the prompt: it
// is part of every wall time, and of no time a cycle.
void add_cycles(const PackEvidence& pack, EvalArm arm, ArmPackFigures& f) {
  AcceptanceCounts all, mixed;
  int64_t draft_ns = 0;
  uint64_t timed = 0;
  bool known = true;
  for (size_t i = 0; i < pack.steps.size(); ++i) {
    const EvalStep& step = pack.steps[i];
    if (step.kind != StepKind::timed || pack.loops[step.request]) continue;
    const RequestRecord& r = *pack.of(arm)[i].record;
    all.add(r);
    if (class_of(pack.pack.requests[step.request]) == kMixed) mixed.add(r);
    for (size_t k = 1; k < r.chunks.size(); ++k) {
      known = known && r.chunks[k].draft_ns.has_value();
      draft_ns += r.chunks[k].draft_ns.value_or(0);
      ++timed;
    }
  }
  const auto per_cycle = [](const AcceptanceCounts& c) {
    return c.cycles == 0 ? std::nullopt : std::optional(static_cast<double>(c.emitted) / static_cast<double>(c.cycles));
  };
  f.emitted_per_cycle = per_cycle(all);
  f.emitted_per_cycle_mixed = per_cycle(mixed);
  f.acceptance_by_position = all.by_position();
  if (known && timed > 0) f.draft_and_policy_ms = static_cast<double>(draft_ns) / 1e6 / static_cast<double>(timed);
}

std::optional<double> gain(std::optional<double> candidate, std::optional<double> current) {
  if (!candidate || !current || !(*current > 0)) return std::nullopt;
  return *candidate / *current - 1;
}

// The mean over requests of what the candidate's wall rate has over the current policy's, and its lower bound.
void add_bootstrap(const EvalManifest& manifest, const std::map<size_t, RequestSpeed>& current,
                   const std::map<size_t, RequestSpeed>& candidate, PackVerdict& v) {
  std::vector<double> differences;
  for (const auto& [request, s] : candidate) differences.push_back(s.wall_rate() - current.at(request).wall_rate());
  if (differences.empty()) return;
  const auto mean = [&](std::span<const uint32_t> drawn) {
    double sum = 0;
    for (const uint32_t i : drawn) sum += differences[i];
    return sum / static_cast<double>(drawn.size());
  };
  const Bootstrap plan{manifest.bootstrap_seed, manifest.contract.resamples, manifest.contract.confidence};
  const Interval interval = bootstrap_interval(differences.size(), plan, mean);
  v.mean_difference = statistics(differences).mean;
  if (interval.covers) v.lower_bound = interval.low;
}

class Gates {
 public:
  Gates(GateGroup group, const PackVerdict& pack, std::vector<EvalGate>& gates)
      : group_(group), pack_(pack), gates_(gates) {}

  void add(const char* name, const std::optional<double>& value, bool holds, const std::string& what) {
    const GateState state = !value ? GateState::unproven : holds ? GateState::passed : GateState::failed;
    gates_.push_back({group_, name, pack_.name, state, value ? what : kNoTarget});
  }

 private:
  GateGroup group_;
  const PackVerdict& pack_;
  std::vector<EvalGate>& gates_;
};

void judge_development(const SpecEvalContract& c, const PackVerdict& p, std::vector<EvalGate>& gates) {
  Gates g(GateGroup::development, p, gates);
  const ArmPackFigures& f = p.arms[static_cast<size_t>(EvalArm::candidate)];
  const double all = f.emitted_per_cycle.value_or(0), mixed = f.emitted_per_cycle_mixed.value_or(0);
  const double draft = f.draft_and_policy_ms.value_or(0);
  g.add("emitted_per_cycle", f.emitted_per_cycle, all >= c.emitted_per_cycle,
        fmt::format("{:.3f} tokens a target cycle ({} wanted)", all, c.emitted_per_cycle));
  g.add("emitted_per_cycle_mixed", f.emitted_per_cycle_mixed, mixed >= c.emitted_per_cycle_mixed,
        fmt::format("{:.3f} tokens a target cycle on mixed requests ({} wanted)", mixed, c.emitted_per_cycle_mixed));
  g.add("draft_and_policy", f.draft_and_policy_ms, draft <= c.draft_and_policy_ms,
        fmt::format("{:.4f} ms of draft and policy a cycle ({} allowed)", draft, c.draft_and_policy_ms));
}

void judge_p10(const SpecEvalContract& c, const PackVerdict& p, Gates& g) {
  const auto& current = p.arms[static_cast<size_t>(EvalArm::current)].p10;
  const auto& candidate = p.arms[static_cast<size_t>(EvalArm::candidate)].p10;
  std::optional<double> worst;
  std::string where;
  for (const auto& [name, value] : candidate) {
    const auto same = [&, n = name](const auto& entry) { return entry.first == n; };
    const auto other = std::find_if(current.begin(), current.end(), same);
    if (other == current.end()) continue;
    const auto change = gain(value, other->second);
    if (!change || (worst && *change >= *worst)) continue;
    worst = change;
    where = name;
  }
  g.add("p10", worst, worst.value_or(-1) >= -c.p10_regression,
        fmt::format("the slowest tenth changes by {:+.2f} % at worst, in '{}' (-{:g} % allowed)",
                    100 * worst.value_or(0), where, 100 * c.p10_regression));
}

void judge_promotion(const SpecEvalContract& c, const PackVerdict& p, std::vector<EvalGate>& gates) {
  Gates g(GateGroup::promotion, p, gates);
  const auto over = [&](const char* name, const std::optional<double>& value, double wanted, const char* what) {
    g.add(name, value, value.value_or(-1) >= wanted,
          fmt::format("{:+.2f} % {} over the current policy ({:g} % wanted)", 100 * value.value_or(0), what,
                      100 * wanted));
  };
  over("pack_wall", p.wall_gain, c.pack_wall, "tokens a second of the whole pack");
  over("median_decode", p.decode_gain, c.median_decode, "median decode rate");
  over("mixed", p.mixed_gain, c.mixed, "tokens a second on mixed requests");
  g.add("lower_bound", p.lower_bound, p.lower_bound.value_or(0) > 0,
        fmt::format("the {:g} % interval of the paired difference begins at {:.4f} tokens/s (above 0 wanted)",
                    100 * c.confidence, p.lower_bound.value_or(0)));
  judge_p10(c, p, g);
}

}  // namespace

PackVerdict pack_figures(const EvalManifest& manifest, const PackEvidence& pack) {
  PackVerdict v;
  v.name = pack.pack.name;
  v.requests = static_cast<uint32_t>(pack.pack.requests.size());
  v.loops = static_cast<uint32_t>(std::count(pack.loops.begin(), pack.loops.end(), true));
  std::array<std::map<size_t, RequestSpeed>, 3> speeds;
  for (const EvalArm arm : kEvalArms) {
    const auto& s = speeds[static_cast<size_t>(arm)] = speeds_of(pack, arm);
    ArmPackFigures& f = v.arms[static_cast<size_t>(arm)];
    for (const auto& [request, speed] : s) {
      f.tokens += speed.tokens;
      f.seconds += speed.seconds;
    }
    f.wall_rate = rate_of(s, pack, "").value_or(0);
    f.mixed_wall_rate = rate_of(s, pack, kMixed);
    add_decode(s, pack, f);
    add_cycles(pack, arm, f);
  }
  const ArmPackFigures& current = v.arms[static_cast<size_t>(EvalArm::current)];
  const ArmPackFigures& candidate = v.arms[static_cast<size_t>(EvalArm::candidate)];
  v.wall_gain = gain(candidate.wall_rate, current.wall_rate);
  v.decode_gain = gain(candidate.median_decode, current.median_decode);
  v.mixed_gain = gain(candidate.mixed_wall_rate, current.mixed_wall_rate);
  add_bootstrap(manifest, speeds[static_cast<size_t>(EvalArm::current)],
                speeds[static_cast<size_t>(EvalArm::candidate)], v);
  return v;
}

void judge_speed(const EvalManifest& manifest, const std::vector<PackVerdict>& packs, std::vector<EvalGate>& gates) {
  for (const PackVerdict& p : packs) {
    judge_development(manifest.contract, p, gates);
    judge_promotion(manifest.contract, p, gates);
  }
}

}  // namespace stet
