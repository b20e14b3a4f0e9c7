// What the report of a benchmark shows.
#include <fmt/format.h>

#include <map>

#include "lab/report/markup.h"
#include "lab/report/plots.h"
#include "lab/report/report_parts.h"

namespace stet {
namespace {

// In the order of the plan.
const Json& arms_of(const ReportInput& input) {
  static const Json none = Json::array();
  const Json& arms = look(input.results, "arms");
  return arms.is_array() ? arms : none;
}

std::string name_of(const Json& arm) { return text_of(look(arm, "name")); }

std::string label_of(const Json& arm) {
  const std::string name = name_of(arm);
  return text_of(look(arm, "role")) == "teacher" && name != "teacher" ? name + " (teacher)" : name;
}

std::string arm_verdict(const Json& arm) {
  const Json& exactness = look(arm, "exactness");
  const std::string status = text_of(look(exactness, "status"));
  std::vector<std::string> proved, unproven = texts_of(look(arm, "unproven")), invalid = texts_of(look(arm, "invalid"));
  const std::string reason = "exactness: " + shown(look(exactness, "reason"));
  if (status == "proved") {
    const std::string against = text_of(look(exactness, "against"));
    proved.push_back(reason + (against.empty() ? "" : fmt::format(" (against {})", against)));
  } else if (status == "unproven") {
    unproven.insert(unproven.begin(), reason);
  } else if (invalid.empty()) {
    invalid.push_back(reason);
  }
  const auto not_watched = texts_of(look(arm, "not_watched"));
  std::string body = html_element("h3", fmt::format("Arm {}: {}", label_of(arm), shown(look(arm, "verdict")))) +
                     verdict_lists(proved, unproven, invalid);
  if (!not_watched.empty())
    body += html_element("h4", "Not watched: this machine has no counter for it") + html_list(not_watched);
  return "<div class=\"arm\">\n" + body + "</div>\n";
}

// A row of `summary`, whose members are statistics.
struct Shown {
  const char *member, *name;
  int decimals;
};
constexpr Shown kShown[] = {
    {"first_100_tokens_per_second", "tokens/s, tokens 1 to 100 by intervals", 2},
    {"first_100_historical_inclusive_tokens_per_second", "the same, historical inclusive rate", 2},
    {"all_tokens_per_second", "tokens/s, all tokens by intervals", 2},
    {"all_historical_inclusive_tokens_per_second", "the same, historical inclusive rate", 2},
    {"server_tokens_per_second", "tokens/s by the server's clock", 2},
    {"wall_tokens_per_second", "tokens/s of the whole request", 2},
    {"prefill_tokens_per_second", "prompt tokens/s up to the first token", 1},
    {"ttft_seconds", "seconds to the first token", 4},
    {"target_passes_per_second", "target passes/s", 2},
    {"tokens_per_cycle", "tokens a cycle, the bonus token included", 3},
    {"tokens_per_cycle_without_bonus", "tokens a cycle without it", 3},
    {"tokens", "tokens of an answer", 0},
};

std::string summary_table(const Json& arm) {
  HtmlTable table(fmt::format("Arm {}: all requests that count", label_of(arm)), {{"figure"},
                                                                                  {"requests", true},
                                                                                  {"p10", true},
                                                                                  {"median", true},
                                                                                  {"mean", true},
                                                                                  {"stdev", true},
                                                                                  {"lowest", true},
                                                                                  {"highest", true},
                                                                                  {"median of classes", true}});
  for (const Shown& row : kShown) {
    const Json& statistics = look(arm, "summary", row.member);
    std::vector<std::string> cells = {row.name, shown(look(statistics, "count"))};
    for (const char* key : {"p10", "median", "mean", "stdev", "min", "max"})
      cells.push_back(shown_number(number_of(look(statistics, key)), row.decimals));
    cells.push_back(shown_number(number_of(look(arm, "class_balanced", row.member)), row.decimals));
    table.row(cells);
  }
  return table.html();
}

std::string groups_table(const Json& arm, const char* list, const char* key, const std::string& caption) {
  HtmlTable table(caption, {{key},
                            {"requests", true},
                            {"tokens/s 1 to 100, median", true},
                            {"tokens/s all, median", true},
                            {"seconds to first, median", true},
                            {"tokens a cycle, median", true}});
  const Json& groups = look(arm, list);
  if (!groups.is_array()) return "";
  for (const Json& group : groups) {
    const Json& summary = look(group, "summary");
    const auto median = [&](const char* member, int decimals) {
      return shown_number(number_of(look(summary, member, "median")), decimals);
    };
    table.row({shown(look(group, key)), shown(look(group, "requests")), median("first_100_tokens_per_second", 2),
               median("all_tokens_per_second", 2), median("ttft_seconds", 4), median("tokens_per_cycle", 3)});
  }
  return table.rows() > 0 ? table.html() : "";
}

std::string headline(const Json& arm) {
  const Json& head = look(arm, "headline");
  const auto rate = number_of(look(head, "tokens_per_second"));
  const std::string number = rate ? fmt::format("{:.2f}", *rate) : "no rate";
  std::string small = rate ? "tokens a second" : "its speed is not shown, because its tokens are not proved";
  const auto shorter = number_of(look(head, "shorter_windows"));
  if (rate && shorter && *shorter > 0) small += fmt::format("; {:.0f} answers have fewer than 100 tokens", *shorter);
  return fmt::format("<p class=\"headline\"><b>{}</b> {}<br><span>{}</span></p>\n", html_text(number), html_text(small),
                     html_text(fmt::format("arm {}: {}", label_of(arm), shown(look(head, "rule")))));
}

std::string accuracy(const Json& arm) {
  const auto correct = number_of(look(arm, "accuracy", "correct")), of = number_of(look(arm, "accuracy", "of"));
  if (!correct || !of || *of == 0) return "";
  return html_element(
      "p",
      fmt::format(
          "Of {:.0f} questions with one right answer, {:.0f} were answered with it: a property of the model, and no "
          "part of exactness.",
          *of, *correct));
}

const Json& request_result(const ReportInput& input, const RequestRecord& r) {
  static const Json null;
  for (const Json& arm : arms_of(input)) {
    if (name_of(arm) != r.arm || !look(arm, "requests").is_array()) continue;
    for (const Json& request : look(arm, "requests"))
      if (text_of(look(request, "id")) == r.id) return request;
  }
  return null;
}

bool has_speed(const ReportInput& input, const RequestRecord& r) {
  const Json& request = request_result(input, r);
  return number_of(look(request, "ttft_seconds")) || number_of(look(request, "all", "tokens_per_second"));
}

std::vector<std::string> arm_names(const ReportInput& input) {
  std::vector<std::string> names;
  for (const Json& arm : arms_of(input)) names.push_back(name_of(arm));
  return names;
}

RatePlot rates_of(const ReportInput& input) {
  RatePlot plot{"Rate by prompt", "tokens/s", arm_names(input), {}};
  size_t index = 0;
  for (const Json& arm : arms_of(input)) {
    if (look(arm, "requests").is_array())
      for (const Json& request : look(arm, "requests")) {
        auto rate = number_of(look(request, "first_100", "tokens_per_second"));
        if (!rate) rate = number_of(look(request, "all", "tokens_per_second"));
        const auto start = number_of(look(request, "start"));
        if (rate)
          plot.dots.push_back({text_of(look(request, "step")), text_of(look(request, "class")), index,
                               static_cast<uint32_t>(start.value_or(0)), *rate});
      }
    ++index;
  }
  return plot;
}

std::vector<AcceptanceArm> acceptance_of(const ReportInput& input) {
  std::vector<AcceptanceArm> list;
  size_t index = 0;
  for (const Json& arm : arms_of(input)) {
    const size_t number = index++;
    const Json& a = look(arm, "acceptance");
    const std::vector<double> shares = numbers_of(look(a, "by_position"));
    if (shares.empty()) continue;
    list.push_back({number, name_of(arm), shares,
                    fmt::format("{} of {} proposals in {} cycles", shown(look(a, "accepted")),
                                shown(look(a, "proposed")), shown(look(a, "cycles")))});
  }
  return list;
}

void request_rows(HtmlTable& table, const Json& arm) {
  if (!look(arm, "requests").is_array()) return;
  for (const Json& r : look(arm, "requests")) {
    std::vector<std::string> reasons = texts_of(look(r, "invalid"));
    for (const std::string& u : texts_of(look(r, "unproven"))) reasons.push_back("unproven: " + u);
    if (const std::string difference = text_of(look(r, "difference")); !difference.empty())
      reasons.push_back(difference);
    std::string why;
    for (const std::string& reason : reasons) why += (why.empty() ? "" : "; ") + reason;
    const auto rate = [&](const char* window, const char* key) {
      return shown_number(number_of(look(r, window, key)), 2);
    };
    table.row({shown(look(r, "id")), name_of(arm), shown(look(r, "start")), shown(look(r, "step")),
               shown(look(r, "class")), shown(look(r, "tokens")), shown(look(r, "usage", "cached_tokens")),
               shown(look(r, "finish_reason")), shown(look(r, "exact")),
               shown_seconds(number_of(look(r, "ttft_seconds"))), rate("first_100", "tokens_per_second"),
               rate("first_100", "historical_inclusive_tokens_per_second"), rate("all", "tokens_per_second"),
               shown_number(number_of(look(r, "tokens_per_cycle")), 3), why.empty() ? "–" : why});
  }
}

}  // namespace

std::string bench_verdicts(const ReportInput& input) {
  std::string body = html_list(texts_of(look(input.results, "invalid")), "bad");
  for (const Json& arm : arms_of(input)) body += arm_verdict(arm);
  return body.empty() ? missing_part("Arms") : body;
}

std::string bench_figures(const ReportInput& input) {
  std::string candidates, teachers;
  for (const Json& arm : arms_of(input)) {
    std::string& body = text_of(look(arm, "role")) == "teacher" ? teachers : candidates;
    body += headline(arm) + summary_table(arm) + accuracy(arm);
    std::string more = groups_table(arm, "by_class", "class", fmt::format("Arm {}: by class", label_of(arm)));
    more += groups_table(arm, "by_start", "start", fmt::format("Arm {}: by start", label_of(arm)));
    if (!more.empty()) body += html_folded(fmt::format("Arm {} by class and by start", label_of(arm)), more);
  }
  return candidates.empty() && teachers.empty() ? missing_part("Figures") : candidates + teachers;
}

std::string bench_pictures(const ReportInput& input) {
  const std::string rates = plot_rates("rates", rates_of(input)),
                    acceptance = plot_acceptance("acceptance", acceptance_of(input));
  std::string body = rates.empty()
                         ? html_element("p", "No rate by prompt: no request here has a rate that is proved.", "missing")
                         : rates;
  body += timeline_part(input, arm_names(input), has_speed);
  return body + (acceptance.empty() ? missing_part("Acceptance by position") : acceptance);
}

std::string bench_requests(const ReportInput& input) {
  HtmlTable table("Requests", {{"request"},
                               {"arm"},
                               {"start", true},
                               {"prompt"},
                               {"class"},
                               {"tokens", true},
                               {"cached", true},
                               {"finish"},
                               {"exact"},
                               {"first token", true},
                               {"tokens/s 1 to 100", true},
                               {"historical", true},
                               {"tokens/s all", true},
                               {"a cycle", true},
                               {"why not"}});
  for (const Json& arm : arms_of(input)) request_rows(table, arm);
  return table.rows() > 0 ? table.html() : "";
}

}  // namespace stet
