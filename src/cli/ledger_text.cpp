#include "cli/ledger_text.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/visible_text.h"

namespace stet {
namespace {

using Json = nlohmann::ordered_json;

std::string last_of_path(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string outcome_of(const AttemptRow& row) {
  if (row.live) return row.treated.empty() ? "running" : "running, treated";
  return row.verdict.empty() ? row.outcome : row.verdict;
}

std::string dashed(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace

std::string attempts_text(const std::vector<AttemptRow>& rows) {
  if (rows.empty()) return "no attempts\n";
  std::string text = fmt::format("{:>5}  {:<20}  {:<9}  {:<16}  {:<10}  {:<10}  {:<10}  {}\n", "id", "begun", "kind",
                                 "outcome", "correct", "component", "endpoint", "what");
  for (auto row = rows.rbegin(); row != rows.rend(); ++row)
    text += fmt::format("{:>5}  {:<20}  {:<9}  {:<16}  {:<10}  {:<10}  {:<10}  {}{}\n", row->id, row->begun,
                        row->plan.kind, outcome_of(*row), row->correctness, row->component, row->endpoint,
                        dashed(row->plan.label), row->plan.idea.empty() ? "" : fmt::format(" [{}]", row->plan.idea));
  return visible_text(text, true);
}

std::string attempt_text(const AttemptRow& row) {
  const std::pair<const char*, std::string> lines[] = {
      {"kind", row.plan.kind},
      {"label", dashed(row.plan.label)},
      {"class", dashed(row.plan.idea)},
      {"cites", row.plan.cites.empty() ? "-" : fmt::format("{}", fmt::join(row.plan.cites, ", "))},
      {"authority", std::string(authority_name(row.plan.authority))},
      {"plan", row.plan.plan_sha256},
      {"subject", row.plan.subject_sha256},
      {"packet", dashed(row.plan.packet)},
      {"packet hash", dashed(row.packet_sha256)},
      {"begun", row.begun},
      {"treated", dashed(row.treated)},
      {"ended", dashed(row.ended)},
      {"outcome", row.live ? "running" : row.outcome},
      {"verdict", dashed(row.verdict)},
      {"reason", dashed(row.reason)},
      {"correctness", row.correctness},
      {"component", row.component},
      {"endpoint", row.endpoint},
      {"infrastructure", row.infrastructure},
      {"measurement", row.measurement},
      {"lifecycle", row.lifecycle}};
  std::string text = fmt::format("attempt {}\n", row.id);
  for (const auto& [name, value] : lines) text += fmt::format("  {:<14}  {}\n", name, value);
  return visible_text(text, true);
}

std::string classes_text(const std::vector<ClassState>& classes) {
  std::string text;
  for (const ClassState& c : classes)
    text += c.closed ? fmt::format("{}: closed {} by entry {} ({}); reopen only if: {}\n", c.name, c.at, c.closure,
                                   c.why, c.reopen_only_if)
                     : fmt::format("{}: open again since {} ({})\n", c.name, c.at, c.why);
  return visible_text(text.empty() ? "no class was ever closed\n" : text, true);
}

std::string state_text(const LabState& s) {
  std::string text =
      fmt::format("lane: {}{}\n", dashed(s.lane), s.lane.empty() ? "" : fmt::format(" (since {})", s.lane_since));
  text += fmt::format("next: {}{}\n", dashed(s.next), s.next.empty() ? "" : fmt::format(" (since {})", s.next_since));
  for (const std::string& line : s.suggestions) text += fmt::format("  {}\n", line);
  text += s.protected_work.empty() ? "protected: nothing\n" : "protected:\n";
  for (const ProtectedWork& p : s.protected_work) text += fmt::format("  {}: {} (since {})\n", p.what, p.why, p.since);
  text += s.running.empty() ? "running: nothing\n" : "running:\n";
  for (const RunningProcess& p : s.running)
    text += fmt::format("  {} {} since {} {}\n", p.verb, p.pid, p.since, p.object_json);
  for (const UnfinishedPacket& p : s.unfinished)
    text += fmt::format("unfinished packet: {} (attempt {}, {})\n", p.partial, p.attempt,
                        p.live ? "running" : "its process is gone");
  for (const ClassState& c : s.closed_classes)
    text += fmt::format("closed class: {}; reopen only if: {}\n", c.name, c.reopen_only_if);
  for (const AttemptRow& row : s.last)
    text += fmt::format("attempt {}: {} {}, {}{}\n", row.id, row.ended, row.plan.kind, outcome_of(row),
                        row.reason.empty() ? "" : ": " + row.reason);
  return visible_text(text, true);
}

Json attempt_json(const AttemptRow& row, bool whole_path) {
  return {{"attempt", row.id},
          {"kind", row.plan.kind},
          {"label", row.plan.label},
          {"class", row.plan.idea},
          {"cites", row.plan.cites},
          {"authority", authority_name(row.plan.authority)},
          {"plan_sha256", row.plan.plan_sha256},
          {"subject_sha256", row.plan.subject_sha256},
          {"packet", whole_path ? row.plan.packet : last_of_path(row.plan.packet)},
          {"packet_sha256", row.packet_sha256},
          {"begun", row.begun},
          {"treated", row.treated},
          {"ended", row.ended},
          {"outcome", row.live ? "running" : row.outcome},
          {"verdict", row.verdict},
          {"reason", row.reason},
          {"status",
           {{"correctness", row.correctness},
            {"component", row.component},
            {"endpoint", row.endpoint},
            {"infrastructure", row.infrastructure},
            {"measurement", row.measurement},
            {"lifecycle", row.lifecycle}}}};
}

Json class_json(const ClassState& c) {
  return {{"class", c.name}, {"closed", c.closed}, {"entry", c.closure},
          {"at", c.at},      {"why", c.why},       {"reopen_only_if", c.reopen_only_if}};
}

Json state_json(const LabState& s) {
  Json j = {{"lane", s.lane}, {"next", s.next}, {"suggestions", s.suggestions}};
  for (const char* name : {"protected", "running", "live_attempts", "unfinished_packets", "closed_classes", "last"})
    j[name] = Json::array();
  for (const ProtectedWork& p : s.protected_work)
    j["protected"].push_back({{"what", p.what}, {"why", p.why}, {"since", p.since}});
  for (const RunningProcess& p : s.running)
    j["running"].push_back(
        {{"verb", p.verb}, {"pid", p.pid}, {"since", p.since}, {"details", Json::parse(p.object_json)}});
  for (const AttemptRow& row : s.live_attempts) j["live_attempts"].push_back(attempt_json(row, true));
  for (const UnfinishedPacket& p : s.unfinished)
    j["unfinished_packets"].push_back({{"packet", p.partial}, {"attempt", p.attempt}, {"running", p.live}});
  for (const ClassState& c : s.closed_classes) j["closed_classes"].push_back(class_json(c));
  for (const AttemptRow& row : s.last) j["last"].push_back(attempt_json(row, true));
  return j;
}

std::string ledger_export(Ledger& ledger) {
  Json j = {
      {"schema", "stet-ledger-1"}, {"attempts", Json::array()}, {"journal", Json::array()}, {"classes", Json::array()}};
  for (const AttemptRow& row : ledger.attempts()) j["attempts"].push_back(attempt_json(row, false));
  for (const JournalRow& row : ledger.journal())
    j["journal"].push_back({{"entry", row.id},
                            {"at", row.at},
                            {"kind", row.kind},
                            {"subject", row.subject},
                            {"text", row.text},
                            {"condition", row.condition}});
  for (const ClassState& c : ledger.classes()) j["classes"].push_back(class_json(c));
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace stet
