#include "cli/compare_report.h"

#include <fmt/ranges.h>

#include "base/visible_text.h"
#include "base/strict_json.h"

namespace stet {
namespace {

std::string name_of(const JudgedSeries& s) {
  return s.point.empty() ? s.figure.name : fmt::format("{} ({})", s.figure.name, s.point);
}

std::string series_row(const JudgedSeries& s) {
  return fmt::format("| {} | {:.6g} | {:.6g} | {:.4f} | {:.4f} .. {:.4f}{} | {:.4f} |\n", name_of(s), s.ab.a_median,
                     s.ab.b_median, s.ab.ratio, s.ab.interval.low, s.ab.interval.high,
                     s.ab.interval.covers ? "" : " (range)", s.noise.smallest_effect);
}

std::string pairs_row(const JudgedSeries& s) {
  std::string text = fmt::format("pairs of starts, {}:", name_of(s));
  for (size_t i = 0; i < s.ab.pair_ratios.size(); ++i) {
    text += fmt::format(" {:.4f}", s.ab.pair_ratios[i]);
    if (!s.ab.prompts.empty()) text += fmt::format(" ({} of {})", s.ab.pair_wins[i], s.ab.prompts.size());
  }
  return text + "\n";
}

std::string acceptance(const char* arm, const ArmSummary& a) {
  if (a.proposed == 0) return "";
  return fmt::format("{}: {} of {} proposals accepted, {:.3f} tokens a cycle; by position {:.3f}\n", arm, a.accepted,
                     a.proposed, static_cast<double>(a.emitted) / static_cast<double>(a.cycles),
                     fmt::join(a.acceptance_by_position, " "));
}

std::string before_text(const std::string& context) {
  const Json json = Json::parse(context, nullptr, false);
  if (!json.is_object() || !json.contains("before")) return "";
  return fmt::format("attempt {} of the ledger; {} at the same comparison preceded it\n", json["attempt"].dump(),
                     json["before"]["same_subject"].dump());
}

}  // namespace

std::string floor_text(const std::vector<JudgedSeries>& series) {
  std::string text;
  for (const JudgedSeries& s : series)
    text += fmt::format("A/A {}: identical starts differed by up to {:.2f} %; no effect below {:.2f} % can be told\n",
                        name_of(s), 100 * s.noise.floor, 100 * s.noise.smallest_effect);
  return text;
}

std::string verdict_text(const ComparePlan& plan, const CompareVerdict& v, const std::string& ledger_context) {
  std::string text = fmt::format("A  {}\nB  {}\n", plan.a_shown, plan.b_shown);
  if (!v.series.empty()) {
    text += fmt::format("\n| figure | A | B | ratio (above 1: B is better) | {:g} % interval | smallest effect |\n",
                        100 * plan.bootstrap.confidence);
    text += "| --- | ---: | ---: | ---: | --- | ---: |\n";
    for (const JudgedSeries& s : v.series) text += series_row(s);
    text += "\n";
    for (const JudgedSeries& s : v.series) text += pairs_row(s);
  }
  if (!plan.measures()) {
    const Equality& e = v.equality;
    text += fmt::format("exactness: {} ({})\n",
                        e.proved           ? "proved"
                        : e.faults.empty() ? "unproven"
                                           : "failed",
                        e.basis);
    text += acceptance("A", v.a) + acceptance("B", v.b);
  } else {
    text += "evidence: component; the programs measured themselves, and no token was seen\n";
  }
  for (const WitnessCount& w : v.witnesses)
    text += fmt::format("witness {} of {}: {} in A, {} in B\n", w.witness.counter, w.witness.option,
                        w.control ? fmt::format("{:g}", *w.control) : "not reported",
                        w.candidate ? fmt::format("{:g}", *w.candidate) : "not reported");
  for (const RepeatedStart& r : v.repeated)
    text += fmt::format("start {} of arm {} was run again and does not count: {}\n", r.start, r.arm, r.why);
  text += before_text(ledger_context);
  text += fmt::format("verdict: {}\n", v.verdict);
  for (const std::string& reason : v.reasons) text += fmt::format("  {}\n", reason);
  for (const std::string& reason : v.unproven) text += fmt::format("  unproven: {}\n", reason);
  return visible_text(text, true);
}

}  // namespace stet
