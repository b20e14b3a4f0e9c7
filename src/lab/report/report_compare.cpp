// What the report of a comparison shows.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "lab/compare/disturbed.h"
#include "lab/compare/pairs.h"
#include "lab/report/markup.h"
#include "lab/report/plots.h"
#include "lab/report/report_parts.h"

namespace stet {
namespace {

const Json& series_of_results(const ReportInput& input) {
  static const Json none = Json::array();
  const Json& series = look(input.results, "series");
  return series.is_array() ? series : none;
}

// Names of compare/plan.h; a program names its own.
std::string figure_title(const std::string& figure) {
  constexpr std::pair<const char*, const char*> kTitles[] = {
      {"rate_100", "rate over tokens 1 to 100"},     {"rate_all", "rate over all tokens"},
      {"server_rate", "rate by the server's clock"}, {"wall_rate", "rate of the whole request"},
      {"prefill_rate", "rate of the prompt"},        {"ttft", "time to the first token"},
  };
  for (const auto& [name, title] : kTitles)
    if (figure == name) return title;
  return figure;
}

std::string title_of(const Json& series) {
  const std::string point = text_of(look(series, "point")), figure = figure_title(text_of(look(series, "figure")));
  return point.empty() ? figure : fmt::format("{} at {}", figure, point);
}

std::string unit_of(std::string_view figure) {
  if (figure == "ttft") return "seconds";
  return figure.find("rate") != figure.npos ? "tokens/s" : std::string(figure);
}

std::string interval_of(const Json& phase) {
  const std::vector<double> ends = numbers_of(look(phase, "interval"));
  if (ends.size() != 2) return "–";
  return fmt::format("{:.4f} .. {:.4f}{}", ends[0], ends[1],
                     look(phase, "confidence").is_null() ? " (whole range)" : "");
}

std::string series_table(const ReportInput& input) {
  HtmlTable table("Figures", {{"figure"},
                              {"better"},
                              {"A, median", true},
                              {"B, median", true},
                              {"ratio", true},
                              {"interval", true},
                              {"A/A ratio", true},
                              {"noise floor", true},
                              {"smallest detectable effect", true},
                              {"saving, ms", true},
                              {"promoted"}});
  for (const Json& s : series_of_results(input)) {
    const auto n = [&](const char* phase, const char* key, int decimals) {
      return shown_number(number_of(look(s, phase, key)), decimals);
    };
    table.row({title_of(s), shown(look(s, "better")), n("ab", "a_median", 3), n("ab", "b_median", 3),
               n("ab", "ratio", 4), interval_of(look(s, "ab")), n("aa", "ratio", 4),
               shown_number(number_of(look(s, "noise_floor")), 4),
               shown_number(number_of(look(s, "smallest_detectable_effect")), 4), n("ab", "saving_ms", 4),
               shown(look(s, "promoted"))});
  }
  return table.rows() > 0 ? table.html() : "";
}

std::string arms_table(const ReportInput& input) {
  HtmlTable table("Arms", {{"arm"},
                           {"what it is"},
                           {"starts", true},
                           {"fresh", true},
                           {"requests", true},
                           {"tokens", true},
                           {"cycles", true},
                           {"proposed", true},
                           {"accepted", true},
                           {"tokens a cycle", true}});
  for (const char* name : {"A", "B"}) {
    const Json& arm = look(input.results, "arms", name);
    if (arm.is_null()) continue;
    const auto n = [&](const char* key) { return shown(look(arm, key)); };
    table.row({name, n("shown"), n("starts"), n("fresh_starts"), n("requests"), n("tokens"), n("cycles"), n("proposed"),
               n("accepted"), shown_number(number_of(look(arm, "tokens_per_cycle")), 3)});
  }
  return table.rows() > 0 ? table.html() : missing_part("Arms");
}

std::string repeated_table(const ReportInput& input) {
  HtmlTable table("Starts that were run again, because other machines disturbed them; they do not count", {{"arm"}, {"start", true}, {"why"}});
  const Json& repeated = look(input.results, "repeated_starts");
  if (repeated.is_array())
    for (const Json& r : repeated) table.row({shown(look(r, "arm")), shown(look(r, "start")), shown(look(r, "why"))});
  return table.rows() > 0 ? table.html() : "";
}

std::string witness_table(const ReportInput& input) {
  HtmlTable table("Witnesses: what each option under test left behind",
                  {{"option"}, {"counter"}, {"A", true}, {"B", true}, {"holds"}});
  const Json& witnesses = look(input.results, "witnesses");
  if (witnesses.is_array())
    for (const Json& w : witnesses)
      table.row({shown(look(w, "option")), shown(look(w, "counter")), shown(look(w, "control")),
                 shown(look(w, "candidate")), shown(look(w, "holds"))});
  return table.rows() > 0 ? table.html() : missing_part("Witnesses");
}

// The pairs of starts, from the raw events; nothing where they cannot be paired.
std::vector<Series> raw_series(const ReportInput& input) {
  try {
    const ComparePlan plan = parse_plan(input.packet.plan_json);
    const Packet counted = counted_run(plan, input.packet).packet;
    std::vector<RequestFigures> figures;
    for (const RequestRecord& r : counted.requests) figures.push_back(request_figures(r, {.cold = plan.cold}));
    std::vector<std::string> faults;
    std::vector<Series> series = series_of(plan, counted, figures, Phases::both, faults);
    return faults.empty() ? series : std::vector<Series>();
  } catch (const Error&) {
    return {};
  }
}

// Of every prompt the medians over its starts; of programs, which have no prompts, every pair of starts.
std::vector<PairLine> paired(const std::vector<StartPair>& pairs, bool programs) {
  std::vector<PairLine> prompts;
  if (programs) {
    for (const StartPair& pair : pairs)
      for (const PairedValue& v : pair.values)
        prompts.push_back({fmt::format("starts {} and {}", pair.a_start, pair.b_start), v.step_class, v.a, v.b});
    return prompts;
  }
  for (const PairedValue& first : pairs.empty() ? std::vector<PairedValue>() : pairs[0].values) {
    std::vector<double> a, b;
    for (const StartPair& pair : pairs)
      for (const PairedValue& v : pair.values)
        if (v.id == first.id) a.push_back(v.a), b.push_back(v.b);
    prompts.push_back({first.id, first.step_class, median_of(a), median_of(b)});
  }
  return prompts;
}

RatioPlot ratios_of(const Json& series) {
  const Json& ab = look(series, "ab");
  RatioPlot plot;
  plot.title = "Ratios of " + title_of(series);
  if (look(ab, "prompts").is_array())
    for (const Json& p : look(ab, "prompts"))
      if (const auto ratio = number_of(look(p, "ratio")))
        plot.dots.push_back({shown(look(p, "id")), shown(look(p, "class")), *ratio});
  if (plot.dots.empty()) {
    size_t i = 0;
    for (const double ratio : numbers_of(look(ab, "pair_ratios")))
      plot.dots.push_back({fmt::format("pair {}", i++), "", ratio});
  }
  const std::vector<double> ends = numbers_of(look(ab, "interval"));
  plot.median = number_of(look(ab, "ratio"));
  if (ends.size() == 2) plot.low = ends[0], plot.high = ends[1];
  if (const auto confidence = number_of(look(ab, "confidence")))
    plot.confidence = fmt::format("{:g} %", 100 * *confidence);
  plot.noise = number_of(look(series, "smallest_detectable_effect"));
  return plot;
}

std::vector<AcceptanceArm> compared_acceptance(const ReportInput& input) {
  std::vector<AcceptanceArm> list;
  for (const char* name : {"A", "B"}) {
    const size_t number = *name == 'B' ? 1 : 0;
    const Json& arm = look(input.results, "arms", name);
    const std::vector<double> shares = numbers_of(look(arm, "acceptance_by_position"));
    if (!shares.empty())
      list.push_back({number, name, shares,
                      fmt::format("{} of {} proposals in {} cycles", shown(look(arm, "accepted")),
                                  shown(look(arm, "proposed")), shown(look(arm, "cycles")))});
  }
  return list;
}

// Where the tokens are proved; else series is empty.
bool has_compared_speed(const ReportInput& input, const RequestRecord& r) {
  return !series_of_results(input).empty() && !r.cancelled_by_client;
}

}  // namespace

std::string compare_verdicts(const ReportInput& input) {
  const Json& equality = look(input.results, "equality");
  std::vector<std::string> proved, unproven = texts_of(look(input.results, "unproven"));
  if (look(equality, "proved") == Json(true))
    proved.push_back(fmt::format("equality of {}: {} of {} answers are equal ({})", shown(look(equality, "asked")),
                                 shown(look(equality, "equal")), shown(look(equality, "compared")),
                                 shown(look(equality, "basis"))));
  for (const std::string& reason : texts_of(look(equality, "unproven")))
    if (std::find(unproven.begin(), unproven.end(), reason) == unproven.end())
      unproven.push_back("equality: " + reason);
  const std::string verdict = text_of(look(input.results, "verdict"));
  if (verdict == "promoted")
    proved.emplace_back("B is better than A by more than identical arms differ, and by every rule of the plan");
  const std::vector<std::string> reasons = texts_of(look(input.results, "reasons"));
  std::string body = verdict_lists(proved, unproven, {});
  if (!reasons.empty())
    body +=
        html_element("h3", verdict == "void" ? "Why it is void" : "Why B is not promoted") + html_list(reasons, "bad");
  return body + witness_table(input);
}

std::string compare_figures(const ReportInput& input) {
  const std::string series = series_table(input);
  return arms_table(input) + repeated_table(input) +
         (series.empty() ? html_element("p", "No figure: the run is void, or its tokens are not proved.", "missing")
                         : series);
}

std::string compare_pictures(const ReportInput& input) {
  std::string body;
  const std::vector<Series> raw = raw_series(input);
  const bool programs = !input.packet.measures.empty();
  size_t i = 0;
  for (const Json& series : series_of_results(input)) {
    const std::string title = title_of(series), figure = text_of(look(series, "figure"));
    for (const Series& s : raw)
      if (s.figure.name == figure && s.point == text_of(look(series, "point")))
        body += plot_pairs(fmt::format("pairs{}", i),
                           {"A and B: " + title, unit_of(figure), programs ? "pair of starts" : "prompt",
                            s.figure.higher_is_better, paired(s.ab, programs)});
    body += plot_ratios(fmt::format("ratios{}", i), ratios_of(series));
    ++i;
  }
  if (body.empty()) body = html_element("p", "No pairs: the run is void, or its tokens are not proved.", "missing");
  if (!input.packet.requests.empty()) body += timeline_part(input, {"A", "B"}, has_compared_speed);
  const std::string acceptance = plot_acceptance("acceptance", compared_acceptance(input));
  return body + (acceptance.empty() ? missing_part("Acceptance by position") : acceptance);
}

}  // namespace stet
