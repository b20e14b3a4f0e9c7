#include "lab/report/report_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "lab/report/markup.h"
#include "lab/report/plots.h"

namespace stet {
namespace {

constexpr ReportKind kReportKinds[] = {
    {"bench", "Benchmark", bench_verdicts, bench_figures, bench_pictures},
    {"compare", "Comparison", compare_verdicts, compare_figures, compare_pictures},
    {"spec-eval", "Judgement of a speculation policy", plain_verdicts, plain_figures, no_pictures},
    {"", "Packet", plain_verdicts, plain_figures, no_pictures},
};

std::string starts_table(const ReportInput& input) {
  HtmlTable table("Starts", {{"arm"}, {"start", true}, {"fresh process"}});
  for (const StartRecord& s : input.packet.starts)
    table.row({s.arm, fmt::format("{}", s.start), s.fresh ? "yes" : "no"});
  return table.html();
}

// The starts of an arm that said the same of themselves.
struct SameIdentity {
  std::string identity, arm;
  std::vector<uint32_t> starts;

  // "Arm A, starts 0 to 3, 5"
  std::string who() const {
    std::string list;
    for (size_t i = 0; i < starts.size(); ++i) {
      size_t last = i;
      while (last + 1 < starts.size() && starts[last + 1] == starts[last] + 1) ++last;
      list += fmt::format("{}{}", list.empty() ? "" : ", ", starts[i]);
      if (last > i) list += fmt::format(" to {}", starts[last]);
      i = last;
    }
    return fmt::format("Arm {}, start{} {}", arm, starts.size() > 1 ? "s" : "", list);
  }
};

std::vector<SameIdentity> identities_of(const Packet& packet) {
  std::vector<SameIdentity> groups;
  for (const StartRecord& s : packet.starts) {
    const auto same = [&](const SameIdentity& g) { return g.identity == s.identity_json && g.arm == s.arm; };
    auto it = std::find_if(groups.begin(), groups.end(), same);
    if (it == groups.end()) it = groups.insert(groups.end(), {s.identity_json, s.arm, {}});
    it->starts.push_back(s.start);
  }
  return groups;
}

}  // namespace

const ReportKind& report_kind(std::string_view kind) {
  for (const ReportKind& k : kReportKinds)
    if (k.kind == kind) return k;
  return kReportKinds[std::size(kReportKinds) - 1];
}

std::string missing_part(std::string_view what) {
  return html_element("p", fmt::format("{}: not in this packet.", what), "missing");
}

std::string verdict_lists(const std::vector<std::string>& proved, const std::vector<std::string>& unproven,
                          const std::vector<std::string>& invalid) {
  std::string out;
  const auto add = [&](const char* heading, const std::vector<std::string>& items, const char* css_class) {
    if (!items.empty()) out += html_element("h3", heading) + html_list(items, css_class);
  };
  add("Proved", proved, "good");
  add("Not proved", unproven, "unsure");
  add("Invalid", invalid, "bad");
  return out;
}

std::string leaf_table(std::string_view caption, const Json& json) {
  const auto leaves = flattened(json);
  HtmlTable table(std::string(caption), {{"member"}, {"value"}});
  for (const auto& [path, value] : leaves) table.row({path, value});
  return table.rows() == 0 ? missing_part(caption) : table.html();
}

std::string plain_verdicts(const ReportInput& input) {
  const auto list = [&](const char* key) { return texts_of(look(input.results, key)); };
  std::vector<std::string> invalid = list("invalid");
  for (const std::string& reason : list("reasons")) invalid.push_back(reason);
  const std::string lists = verdict_lists(list("proved"), list("unproven"), invalid);
  return lists.empty() ? missing_part("Reasons for the verdict") : lists;
}

std::string plain_figures(const ReportInput& input) { return leaf_table("Results", input.results); }

std::string no_pictures(const ReportInput&) { return ""; }

std::string identity_part(const ReportInput& input) {
  const Json& client = look(input.identity, "client");
  std::string body = client.is_null() ? missing_part("What measured")
                                      : html_folded("What measured", leaf_table("The measuring process", client));
  for (const SameIdentity& same : identities_of(input.packet)) {
    const Json json = Json::parse(same.identity, nullptr, false);
    const bool readable = !json.is_discarded() && json.is_object() && !json.empty();
    body += html_folded(same.who(), readable ? leaf_table(same.who(), json) : missing_part("What it says of itself"));
  }
  if (input.packet.starts.empty()) return body + missing_part("Starts");
  return body + html_folded("Starts", starts_table(input));
}

std::string plan_part(const ReportInput& input) {
  std::string body = html_element(
      "p", "The plan was frozen before anything was measured; its hash is in the first event and in the results.");
  const std::string text =
      fmt::format("<pre>{}</pre>\n", html_text(input.plan.dump(2, ' ', false, Json::error_handler_t::replace), true));
  return body + html_folded("The plan", text);
}

std::string timeline_part(const ReportInput& input, const std::vector<std::string>& arms,
                          bool (*counts)(const ReportInput&, const RequestRecord&)) {
  std::vector<TimelineLine> lines;
  for (const RequestRecord& r : input.packet.requests) {
    const auto arm = std::find(arms.begin(), arms.end(), r.arm);
    if (arm == arms.end() || !counts(input, r)) continue;
    lines.push_back({static_cast<size_t>(arm - arms.begin()), r.id, timeline_points(r)});
  }
  std::erase_if(lines, [](const TimelineLine& line) { return line.points.empty(); });
  if (lines.empty()) return html_element("p", "No timeline: no request here has a speed that is proved.", "missing");
  return plot_timeline("timeline", arms, lines);
}

}  // namespace stet
