#include "lab/report/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "embedded/lab.h"
#include "lab/packet/verify.h"
#include "lab/report/markup.h"
#include "lab/report/plots.h"
#include "lab/report/report_parts.h"

namespace stet {
namespace {

// A colour and a word; the word alone says it too.
std::string stamp(const std::string& verdict) {
  const bool good = verdict == "valid" || verdict == "promoted" || verdict == "accepted";
  const bool bad = verdict == "invalid" || verdict == "void" || verdict == "rejected";
  return html_element("strong", verdict.empty() ? "no verdict" : verdict,
                      good  ? "stamp good"
                      : bad ? "stamp bad"
                            : "stamp unsure");
}

std::string suite_of(const ReportInput& input) {
  Json suite = look(input.results, "suite");
  if (suite.is_null()) suite = look(input.plan, "suite");
  const std::string id = text_of(look(suite, "id"));
  return id.empty() ? "" : fmt::format("{}, version {}", id, shown(look(suite, "version")));
}

std::string model_of(const ReportInput& input) {
  for (const StartRecord& s : input.packet.starts) {
    const Json json = Json::parse(s.identity_json, nullptr, false);
    for (const Json* part : {&json, &look(json, "engine"), &look(json, "identity")}) {
      const std::string model = text_of(look(*part, "model"));
      if (!model.empty()) return model + (look(*part, "synthetic") == Json(true) ? " (synthetic: random weights)" : "");
    }
  }
  return "";
}

bool history_accelerated(const ReportInput& input) {
  return std::any_of(input.packet.starts.begin(), input.packet.starts.end(), [](const StartRecord& s) {
    return s.identity_json.find("\"history_accelerated\":true") != std::string::npos;
  });
}

// What the ledger held when this was begun.
std::string attempts_before(const ReportInput& input) {
  constexpr std::pair<const char*, const char*> kWords[] = {{"all", "in the ledger"},
                                                            {"same_plan", "of this plan"},
                                                            {"same_subject", "of this subject"},
                                                            {"same_idea", "of this class of ideas"}};
  const Json& before = look(input.results, "ledger", "before");
  std::string text;
  for (const auto& [key, words] : kWords)
    if (const auto n = number_of(look(before, key)))
      text += fmt::format("{}{:.0f} {}", text.empty() ? "" : ", ", *n, words);
  return text;
}

std::string masthead(const ReportInput& input, const ReportKind& kind) {
  const std::string label = text_of(look(input.plan, "label"));
  HtmlTerms terms;
  terms.add("Packet", input.packet.path.substr(input.packet.path.find_last_of('/') + 1));
  terms.add("Kind of plan", input.kind);
  if (const std::string suite = suite_of(input); !suite.empty()) terms.add("Suite", suite);
  if (const std::string model = model_of(input); !model.empty()) terms.add("Model", model);
  if (const std::string created = text_of(look(input.plan, "created")); !created.empty()) terms.add("Planned", created);
  if (const std::string before = attempts_before(input); !before.empty()) terms.add("Attempts before it", before);
  terms.add("SHA-256 of the plan", input.packet.plan_sha256);
  std::string text =
      fmt::format("<header>\n<p class=\"brand\"><span>stet</span></p>\n<h1>{}{}</h1>\n{}", html_text(kind.title),
                  label.empty() ? "" : ": " + html_text(label), stamp(text_of(look(input.results, "verdict"))));
  if (history_accelerated(input))
    text += html_element(
        "p", "History-accelerated: a draft copies from the text itself, and its rates say little about new text.",
        "warning");
  text += html_element(
      "p",
      "Every figure and verdict below was recomputed from the raw events of the packet before this page was written.");
  return text + terms.html() + "</header>\n";
}

std::string checking_part(const ReportInput& input) {
  const std::string name = html_text(input.packet.path.substr(input.packet.path.find_last_of('/') + 1));
  const bool rerun = !input.packet.requests.empty();
  std::string commands = "stet verify " + name;
  if (rerun) commands += "\nstet rerun " + name + " -m MODEL";
  std::string text = rerun ? "The first command" : "It";
  text += " recomputes every figure from the raw events and finds any changed byte";
  text +=
      rerun ? "; the second feeds the recorded ids through the model, on any machine, and confirms every token." : ".";
  return html_element("p", "Trust none of this: ask the packet.") + fmt::format("<pre>{}</pre>\n", commands) +
         html_element("p", text + " What a packet cannot prove is in docs/benchmark.md.");
}

std::string request_part(const Packet& packet, const std::string& id) {
  const auto it =
      std::find_if(packet.requests.begin(), packet.requests.end(), [&](const RequestRecord& r) { return r.id == id; });
  if (it == packet.requests.end())
    fail(Code::kUsage, "the packet has no request '{}'; it has {} requests, such as '{}'", id, packet.requests.size(),
         packet.requests.empty() ? "" : packet.requests.front().id);
  const std::string picture = plot_request("request", *it);
  return html_section("h-request", "One request", picture.empty() ? missing_part("Tokens of the request") : picture);
}

std::string page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src "
      "data:\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" "
      "content=\"light dark\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n<title>{}</title>\n<link rel=\"icon\" "
      "href=\"data:,\">\n<style>\n{}</style>\n</head>\n"
      "<body>\n{}</body>\n</html>\n",
      html_text(title), embedded::kReport, body);
}

}  // namespace

Packet read_packet_for_report(const std::string& path) {
  VerifyReport report = verify_packet(path);
  if (!report.mismatch.empty())
    fail(Code::kInput, "{}: the results are not what the raw events give: {}", path, report.mismatch);
  return std::move(report.packet);
}

std::string report_html(const Packet& packet, const ReportOptions& options) {
  const Json stored = parse_json(packet.results_json, "results.json");
  ReportInput input{packet, parse_json(packet.plan_json, "plan.json"), look(stored, "results"),
                    parse_json(packet.identity_json, "identity.json"), text_of(look(stored, "kind"))};
  const ReportKind& kind = report_kind(input.kind);
  std::string main = html_section("h-verdict", "What is proved", kind.verdicts(input)) +
                     html_section("h-figures", "Figures", kind.figures(input));
  if (const std::string pictures = kind.pictures(input); !pictures.empty())
    main += html_section("h-pictures", "Pictures", pictures);
  if (!options.request.empty()) main += request_part(packet, options.request);
  if (const std::string requests = bench_requests(input); !requests.empty())
    main += html_section("h-requests", "Requests", html_folded("Every request", requests));
  main += html_section("h-identity", "What ran", identity_part(input)) +
          html_section("h-plan", "The plan", plan_part(input)) +
          html_section("h-check", "Check it", checking_part(input));
  const std::string title = fmt::format("{}: {}", kind.title, text_of(look(input.results, "verdict")));
  return page(title, masthead(input, kind) + "<main>\n" + main + "</main>\n");
}

}  // namespace stet
