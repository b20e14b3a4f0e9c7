#include "lab/compare/pairs.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/strict_json.h"

namespace stet {
namespace {

using StartKey = std::pair<std::string, uint32_t>;  // arm, start

// What is measured in each start: step or point -> figure -> value.
struct Measured {
  std::map<StartKey, std::map<std::string, std::map<std::string, double>>> values;
};

Measured measured_requests(const ComparePlan& plan, const Packet& packet, const std::vector<RequestFigures>& figures) {
  Measured all;
  for (size_t i = 0; i < packet.requests.size(); ++i) {
    const RequestRecord& r = packet.requests[i];
    if (r.cancelled_by_client) continue;  // its length is the client's choice: it has no rate
    for (const Figure& f : plan.figures)
      if (const auto value = request_figure(figures[i], f.name))
        all.values[{r.arm, r.start}][r.step_id][f.name] = *value;
  }
  return all;
}

Measured measured_programs(const Packet& packet) {
  Measured all;
  for (const MeasureRecord& m : packet.measures) {
    const Json figures = parse_json(m.figures_json, "the figures of a program");
    for (const auto& [name, value] : figures.items())
      if (value.is_number()) all.values[{m.arm, m.start}][m.point][name] = value.get<double>();
  }
  return all;
}

// The figures that both arms print at a point, where the plan leaves them to their units.
std::vector<Figure> figures_by_unit(const ComparePlan& plan, const Packet& packet, const std::string& point,
                                    int arms_wanted) {
  std::map<std::string, int> arms_with;
  for (const char* arm : {"A", "B"}) {
    const auto m = std::find_if(packet.measures.begin(), packet.measures.end(),
                                [&](const MeasureRecord& r) { return r.arm == arm && r.point == point; });
    if (m == packet.measures.end()) continue;
    const Json figures = parse_json(m->figures_json, "the figures of a program");
    for (const auto& [name, value] : figures.items()) arms_with[name] += value.is_number();
  }
  std::vector<Figure> figures = plan.figures;
  if (!figures.empty()) return figures;
  for (const auto& [name, arms] : arms_with)
    if (const auto figure = figure_by_unit(name); figure && arms == arms_wanted) figures.push_back(*figure);
  return figures;
}

std::vector<PlannedStep> prompts_of(const ComparePlan& plan, const Packet& packet, uint32_t point) {
  if (plan.measures()) return {{plan.points[point], ""}};
  // A request that the suite has cancelled is no prompt with a rate.
  std::vector<PlannedStep> prompts;
  for (const PlannedStep& step : plan.steps) {
    const bool cancelled = std::any_of(packet.requests.begin(), packet.requests.end(), [&](const RequestRecord& r) {
      return r.step_id == step.id && r.cancelled_by_client;
    });
    if (!cancelled) prompts.push_back(step);
  }
  return prompts;
}

// A pair: the a-side leg and the b-side leg of one half of a round.
std::vector<std::pair<Leg, Leg>> paired_legs(const std::vector<Leg>& legs) {
  std::vector<std::pair<Leg, Leg>> pairs;
  for (size_t i = 0; i + 3 < legs.size(); i += 4) {
    pairs.emplace_back(legs[i], legs[i + 1]);
    pairs.emplace_back(legs[i + 3], legs[i + 2]);
  }
  return pairs;
}

std::vector<StartPair> pairs_of(const std::vector<Leg>& legs, const std::vector<PlannedStep>& prompts,
                                const Figure& figure, const Measured& measured, std::vector<std::string>& faults) {
  std::vector<StartPair> pairs;
  for (const auto& [a, b] : paired_legs(legs)) {
    StartPair pair{a.round, a.start, b.start, {}};
    for (const PlannedStep& prompt : prompts) {
      double value[2] = {0, 0};
      for (const Leg* leg : {&a, &b}) {
        const auto start = measured.values.find({std::string(1, leg->arm), leg->start});
        const bool known = start != measured.values.end() && start->second.count(prompt.id) > 0 &&
                           start->second.at(prompt.id).count(figure.name) > 0;
        if (known) value[leg == &b] = start->second.at(prompt.id).at(figure.name);
        if (!known || !(value[leg == &b] > 0))
          faults.push_back(fmt::format("start {} of arm {} has no {} above 0 for '{}'", leg->start, leg->arm,
                                       figure.name, prompt.id));
      }
      if (value[0] > 0 && value[1] > 0) pair.values.push_back({prompt.id, prompt.step_class, value[0], value[1]});
    }
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

double ratio_of(const PairedValue& v, const Figure& figure) { return figure.higher_is_better ? v.b / v.a : v.a / v.b; }

// Milliseconds in a time, or between two events of a rate; nothing for figures that are neither.
std::optional<double> milliseconds(double value, const Figure& figure) {
  if (figure.higher_is_better && !figure.name.ends_with("_gb_s")) return 1000.0 / value;
  if (figure.name == "ttft" || figure.name.ends_with("_seconds")) return 1000.0 * value;
  if (figure.name.ends_with("_ms")) return value;
  if (figure.name.ends_with("_us")) return value / 1000.0;
  if (figure.name.ends_with("_ns")) return value / 1000000.0;
  return std::nullopt;
}

// The worst start's median over prompts, of one side.
double worst_start(const std::vector<StartPair>& pairs, const Figure& figure, bool side_b) {
  std::optional<double> worst;
  for (const StartPair& pair : pairs) {
    std::vector<double> values;
    for (const PairedValue& v : pair.values) values.push_back(side_b ? v.b : v.a);
    const double m = median_of(values);
    if (!worst || (figure.higher_is_better ? m < *worst : m > *worst)) worst = m;
  }
  return *worst;
}

}  // namespace

std::optional<double> request_figure(const RequestFigures& f, const std::string& name) {
  const auto rate = [](const std::optional<WindowRate>& w) {
    return w ? std::optional(w->interval_rate) : std::nullopt;
  };
  if (name == "rate_100") return rate(f.first_100);
  if (name == "rate_all") return rate(f.all);
  if (name == "server_rate") return f.server_rate;
  if (name == "wall_rate") return f.wall_rate;
  if (name == "prefill_rate") return f.prefill_rate;
  if (name == "ttft") return f.ttft_seconds;
  return std::nullopt;
}

std::vector<Series> series_of(const ComparePlan& plan, const Packet& packet, const std::vector<RequestFigures>& figures,
                              Phases phases, std::vector<std::string>& faults) {
  const Measured measured = plan.measures() ? measured_programs(packet) : measured_requests(plan, packet, figures);
  const std::vector<Leg> legs = legs_of(plan);
  std::vector<Series> all;
  for (uint32_t point = 0; point < std::max<size_t>(1, plan.points.size()); ++point) {
    const std::string name = plan.measures() ? plan.points[point] : "";
    const bool both = phases == Phases::both;
    const auto judged = plan.measures() ? figures_by_unit(plan, packet, name, both ? 2 : 1) : plan.figures;
    if (judged.empty()) faults.push_back(fmt::format("the arms print no figure in common at '{}'", name));
    for (const Figure& figure : judged) {
      Series series{name, figure, {}, {}};
      std::vector<Leg> of_phase[2];
      for (const Leg& leg : legs)
        if (leg.point == point) of_phase[leg.aa].push_back(leg);
      const std::vector<PlannedStep> prompts = prompts_of(plan, packet, point);
      if (prompts.empty()) faults.emplace_back("the client left every request, so none has a rate");
      series.aa = pairs_of(of_phase[1], prompts, figure, measured, faults);
      if (both) series.ab = pairs_of(of_phase[0], prompts, figure, measured, faults);
      all.push_back(std::move(series));
    }
  }
  return all;
}

PhaseFigures phase_figures(const std::vector<StartPair>& pairs, const Figure& figure, const Bootstrap& plan) {
  STET_CHECK(!pairs.empty() && !pairs[0].values.empty());
  const size_t prompts = pairs[0].values.size();
  PhaseFigures phase;
  Clusters ratios(prompts);
  std::vector<double> a(prompts), b(prompts), saving;
  for (size_t i = 0; i < prompts; ++i) {
    std::vector<double> of_a, of_b, of_saving;
    for (const StartPair& pair : pairs) {
      STET_CHECK(pair.values.size() == prompts && pair.values[i].id == pairs[0].values[i].id);
      const PairedValue& v = pair.values[i];
      ratios[i].push_back(ratio_of(v, figure));
      of_a.push_back(v.a);
      of_b.push_back(v.b);
      if (const auto ms = milliseconds(v.a, figure)) of_saving.push_back(*ms - *milliseconds(v.b, figure));
    }
    a[i] = median_of(of_a);
    b[i] = median_of(of_b);
    if (!of_saving.empty()) saving.push_back(median_of(of_saving));
    if (prompts > 1)
      phase.prompts.push_back({pairs[0].values[i].id, pairs[0].values[i].step_class, median_of(ratios[i])});
  }
  for (const StartPair& pair : pairs) {
    std::vector<double> of_pair;
    for (const PairedValue& v : pair.values) of_pair.push_back(ratio_of(v, figure));
    phase.pair_ratios.push_back(median_of(of_pair));
    phase.pair_wins.push_back(
        static_cast<uint32_t>(std::count_if(of_pair.begin(), of_pair.end(), [](double r) { return r > 1; })));
  }
  phase.a_median = median_of(a);
  phase.b_median = median_of(b);
  if (!saving.empty()) phase.saving_ms = median_of(saving);
  phase.ratio = clustered_median(ratios);
  // One prompt is no sample of prompts: then the pairs are the sample.
  phase.interval = prompts > 1 ? clustered_interval(ratios, plan) : median_interval(ratios[0], plan.confidence);
  phase.a_worst_start = worst_start(pairs, figure, false);
  phase.b_worst_start = worst_start(pairs, figure, true);
  return phase;
}

}  // namespace stet
