// What a row of the board has to show, checked against a packet.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lab/bench/suite.h"
#include "lab/submit/submitted_arm.h"

namespace stet {
namespace {

constexpr const char* kSuite = "realistic-v1";
constexpr size_t kLeastPrompts = 12, kLeastClasses = 5, kLeastStarts = 2;

using Reasons = std::vector<std::string>;

void check_verdicts(const SubmittedArm& s, Reasons& out) {
  const std::string verdict = s.arm.at("verdict").get<std::string>();
  if (verdict != "valid") {
    Json reasons = s.arm.at(verdict == "invalid" ? "invalid" : "unproven");
    if (reasons.empty()) reasons.push_back(s.arm.at("exactness").at("reason"));
    out.push_back(fmt::format("verdict: it is {} ({}{})", verdict, reasons[0].get<std::string>(),
                              reasons.size() > 1 ? fmt::format(" and {} more", reasons.size() - 1) : ""));
  }
  if (s.results.at("verdict") != "valid" && verdict == "valid")
    out.push_back(fmt::format("verdict: that of the whole packet is {}", s.results.at("verdict").get<std::string>()));
  const Json& exactness = s.arm.at("exactness");
  if (exactness.at("status") != "proved")
    out.push_back(fmt::format("exactness: {}: {}", exactness.at("status").get<std::string>(),
                              exactness.at("reason").get<std::string>()));
  if (!s.arm.at("headline").at("tokens_per_second").is_number()) out.push_back("tokSOut: the packet shows no rate");
}

// The complete suite of this program, whose every prompt is new, cold and answered in full.
void check_suite(const SubmittedArm& s, Reasons& out) {
  const Suite suite = load_suite(kSuite);
  const Json& asked = s.plan.suite;
  if (asked.at("id") != suite.id || asked.at("sha256") != suite.sha256)
    out.push_back(fmt::format("realisticSuiteGatePassed: the suite is {} ({}...), and the gate is {} ({}...)",
                              asked.at("id").get<std::string>(), asked.at("sha256").get<std::string>().substr(0, 12),
                              suite.id, suite.sha256.substr(0, 12)));
  const bool whole = std::equal(s.plan.steps.begin(), s.plan.steps.end(), suite.steps.begin(), suite.steps.end(),
                                [](const BenchStep& a, const SuiteStep& b) { return a.id == b.id; });
  if (!whole) out.push_back("realisticSuiteGatePassed: not every prompt of the suite was asked, once, in its order");
  std::set<std::string> classes;
  for (const BenchStep& step : s.plan.steps) classes.insert(step.step_class);
  if (s.plan.steps.size() < kLeastPrompts || classes.size() < kLeastClasses)
    out.push_back(fmt::format("realisticSuiteGatePassed: {} prompts of {} classes; {} of {} are the least",
                              s.plan.steps.size(), classes.size(), kLeastPrompts, kLeastClasses));
  if (s.planned.fixed_length)
    out.push_back("realisticSuiteGatePassed: answers were made longer than the model would (--ignore-eos)");
}

void check_metric(const SubmittedArm& s, Reasons& out) {
  const Json& headline = s.arm.at("headline");
  if (headline.at("shorter_windows") != 0)
    out.push_back(fmt::format("{}: {} of {} answers have fewer than {} tokens", kPrimaryMetric,
                              headline.at("shorter_windows").get<uint32_t>(), headline.at("requests").get<uint32_t>(),
                              kMetricWindow));
  if (headline.at("requests") != s.requests.size())
    out.push_back(fmt::format("{}: {} of {} answers count", kPrimaryMetric, headline.at("requests").get<uint32_t>(),
                              s.requests.size()));
  std::set<std::string> sampling;
  for (const RequestRecord* r : s.requests) sampling.insert(r->sampling);
  if (sampling.size() != 1 || sampling.begin()->empty())
    out.push_back("decoding: not every request says how it was sampled, or they differ");
}

void check_freshness(const SubmittedArm& s, Reasons& out) {
  size_t fresh = 0;
  for (const Json& start : s.arm.at("by_start")) fresh += start.at("fresh") == true ? 1 : 0;
  if (fresh != s.identities.size() || fresh < kLeastStarts)
    out.push_back(fmt::format("starts: {} of {} were fresh processes; {} are the least, and the lower one is the row",
                              fresh, s.identities.size(), kLeastStarts));
  if (!s.plan.cold || s.plan.repeats_allowed)
    out.push_back("freshResponseHeadlineValid: the plan lets prompts be repeated or warm");
  for (const RequestRecord* r : s.requests) {
    if (r->usage.cached_tokens == 0u) continue;
    out.push_back(fmt::format("realisticSuiteCachedTokensAllZero: request '{}' {}", r->id,
                              r->usage.cached_tokens ? fmt::format("had {} cached tokens", *r->usage.cached_tokens)
                                                     : "does not say how many tokens were cached"));
    return;
  }
}

// A draft that learns from the text it continues is faster the more it repeats: no headline, and it must say so.
void check_history(const SubmittedArm& s, Reasons& out) {
  const std::string draft = s.text("draft");
  const Json mark = s.identity("history_accelerated");
  if (!mark.is_boolean())
    out.push_back("historyAccelerated: the program does not say whether its draft learns from the text");
  else if (mark == true)
    out.push_back(fmt::format("historyAccelerated: the draft '{}' learns from the text, which is no headline", draft));
  else if (!forbidden_marker(draft).empty())
    out.push_back(fmt::format("historyAccelerated: the draft '{}' lacks its mark", draft));
}

void check_speculation(const SubmittedArm& s, Reasons& out) {
  const std::string draft = s.text("draft");
  if (draft.empty()) out.push_back("speculation: the program does not say which draft it ran");
  check_history(s, out);
  if (draft.empty() || draft == "none") return;
  if (s.arm.at("acceptance").at("cycles") == 0) out.push_back("speculation: the cycles were not reported");
  const bool has_weights = s.identity("history_accelerated") != true;
  if (has_weights && s.text("draft_sha256").empty())
    out.push_back("speculation: the hash of the draft's weights is not known");
}

void check_model(const SubmittedArm& s, Reasons& out) {
  const Json synthetic = s.identity("synthetic");
  if (synthetic != false)
    out.push_back(synthetic == true ? "synthetic: the weights are random numbers; no model ran"
                                    : "synthetic: the program does not say whether its weights are a model's");
  for (const char* member : {"model", "model_sha256", "tokenizer_sha256"})
    if (s.text(member).empty()) out.push_back(fmt::format("{}: the program does not say it", member));
  const Json formats = s.identity("weight_formats");
  if (!formats.is_array() || formats.empty())
    out.push_back("quantization: the program does not say the formats of its weights (weight_formats)");
  if (!s.identity("context").is_number_unsigned()) out.push_back("contextLength: the program does not say it");
}

void check_program(const SubmittedArm& s, Reasons& out) {
  if (s.text("program") != "stet") out.push_back("engineName: the process did not say that it was stet");
  for (const char* member : {"version", "build_id", "commit", "compiler", "kv", "activations", "isa"})
    if (s.text(member).empty()) out.push_back(fmt::format("{}: the program does not say it", member));
  if (const std::string state = s.text("commit_state"); state != "clean")
    out.push_back(fmt::format("commit: the tree it was built from was {}, so that the commit does not say what ran",
                              state.empty() ? "not looked at" : state));
}

void check_hardware(const SubmittedArm& s, Reasons& out) {
  if (const std::string device = s.text("device"); device != "cpu")
    out.push_back(fmt::format("hardware: it ran on '{}', and the packet does not hold its name and memory", device));
  if (s.text("cpu_model").empty()) out.push_back("hardware.cpu: the program does not say it (cpu_model)");
  if (!s.identity("memory_bytes").is_number_unsigned())
    out.push_back("hardware.ramGb: the program does not say it (memory_bytes)");
  if (s.text("kernel_release").empty()) out.push_back("hardware.os: the program does not say it (kernel_release)");
}

}  // namespace

std::string forbidden_marker(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  for (const char* marker : {"history", "n-gram", "ngram", "non-headline", "nonheadline", "prompt-lookup"})
    if (lower.find(marker) != std::string::npos) return marker;
  return "";
}

std::vector<std::string> unproved(const SubmittedArm& arm) {
  Reasons out;
  check_verdicts(arm, out);
  check_suite(arm, out);
  check_metric(arm, out);
  check_freshness(arm, out);
  check_speculation(arm, out);
  check_model(arm, out);
  check_program(arm, out);
  check_hardware(arm, out);
  return out;
}

}  // namespace stet
