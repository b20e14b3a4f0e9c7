#include <algorithm>

#include "base/error.h"
#include "lab/bench/bench.h"
#include "base/strict_json.h"

namespace stet {
namespace {

constexpr size_t kShownReasons = 8, kShownRequests = 60;

// A figure that may not be shown, or that there is none of.
std::string formatted(const Json& value, const char* format) {
  return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : "-";
}

std::string window(const Json& request, const char* name, const char* member) {
  const Json& w = request.at(name);
  return w.is_object() ? formatted(w.at(member), "{:.1f}") : "-";
}

std::string acceptance(const Json& request) {
  std::string text;
  for (const Json& share : request.at("acceptance_by_position"))
    text += fmt::format("{}{:.0f}", text.empty() ? "" : " ", 100 * share.get<double>());
  return text.empty() ? "-" : text;
}

std::string exact(const Json& request) {
  if (!request.at("exact").is_boolean()) return "-";
  return request.at("exact").get<bool>() ? "yes" : "NO";
}

std::string marks(const Json& request) {
  std::string text;
  for (const char* list : {"invalid", "unproven"})
    for (const Json& reason : request.at(list)) {
      const std::string whole = reason.get<std::string>();
      text += (text.empty() ? "" : ", ") + whole.substr(0, whole.find(':'));
    }
  return text;
}

void append_requests(const Json& arm, std::string& out) {
  out += fmt::format("{:<24} {:>5} {:>8} {:>6}  {:>8} {:>8} {:>8}  {:>6}  {:<5}  {:<18} {}\n", "step", "start",
                     "TTFT s", "tokens", "1-100", "(hist.)", "all", "/cycle", "exact", "accepted %", "finish");
  size_t rows = 0;
  for (const Json& r : arm.at("requests")) {
    if (++rows > kShownRequests) {
      out += fmt::format("... and {} more requests\n", arm.at("requests").size() - kShownRequests);
      return;
    }
    const std::string notes = marks(r);
    out += fmt::format(
        "{:<24} {:>5} {:>8} {:>6}  {:>8} {:>8} {:>8}  {:>6}  {:<5}  {:<18} {}{}\n", r.at("step").get<std::string>(),
        r.at("start").get<uint32_t>(), formatted(r.at("ttft_seconds"), "{:.3f}"), r.at("tokens").get<uint32_t>(),
        window(r, "first_100", "tokens_per_second"), window(r, "first_100", "historical_inclusive_tokens_per_second"),
        window(r, "all", "tokens_per_second"), formatted(r.at("tokens_per_cycle"), "{:.2f}"), exact(r), acceptance(r),
        r.at("cancelled_by_client").get<bool>() ? "left" : r.at("finish_reason").get<std::string>(),
        notes.empty() ? "" : "  ! " + notes);
  }
}

void append_summary(const Json& arm, std::string& out) {
  const Json& summary = arm.at("summary");
  constexpr std::pair<const char*, const char*> kLines[] = {
      {"first_100_tokens_per_second", "tokens/s, tokens 1-100 (intervals)"},
      {"first_100_historical_inclusive_tokens_per_second", "the same, historical inclusive rate"},
      {"all_tokens_per_second", "tokens/s, all tokens (intervals)"},
      {"prefill_tokens_per_second", "prompt tokens/s"},
      {"ttft_seconds", "seconds to the first token"},
      {"tokens_per_cycle", "tokens a cycle"},
  };
  for (const auto& [key, name] : kLines) {
    const Json& s = summary.at(key);
    if (!s.is_object()) continue;
    out += fmt::format("{:<38} median {}  p10 {}  mean {}  stdev {}  class-balanced {}\n", name,
                       formatted(s.at("median"), "{:.3f}"), formatted(s.at("p10"), "{:.3f}"),
                       formatted(s.at("mean"), "{:.3f}"), formatted(s.at("stdev"), "{:.3f}"),
                       formatted(arm.at("class_balanced").at(key), "{:.3f}"));
  }
}

void append_reasons(const Json& arm, const char* list, std::string& out) {
  const Json& reasons = arm.at(list);
  for (size_t i = 0; i < std::min(reasons.size(), kShownReasons); ++i)
    out += fmt::format("  {}: {}\n", list, reasons[i].get<std::string>());
  if (reasons.size() > kShownReasons) out += fmt::format("  {}: and {} more\n", list, reasons.size() - kShownReasons);
}

void append_arm(const Json& arm, std::string& out) {
  out += fmt::format("arm {} ({})\n", arm.at("name").get<std::string>(), arm.at("role").get<std::string>());
  append_requests(arm, out);
  append_summary(arm, out);
  const Json& exactness = arm.at("exactness");
  out += fmt::format("exactness: {}: {}\n", exactness.at("status").get<std::string>(),
                     exactness.at("reason").get<std::string>());
  if (exactness.at("status") != "proved") out += "  no rate is shown: speed without exactness has no number\n";
  if (const Json& accuracy = arm.at("accuracy"); accuracy.at("of").get<uint32_t>() > 0)
    out += fmt::format("task accuracy (says nothing about exactness): {} of {}\n",
                       accuracy.at("correct").get<uint32_t>(), accuracy.at("of").get<uint32_t>());
  out += fmt::format("verdict: {}\n", arm.at("verdict").get<std::string>());
  append_reasons(arm, "invalid", out);
  append_reasons(arm, "unproven", out);
}

}  // namespace

std::string bench_table(const std::string& results_json) {
  const Json file = parse_json(results_json, "results.json");
  const Json& results = file.at("results");
  std::string out = fmt::format("suite {} (SHA-256 {}...)\n", results.at("suite").at("id").get<std::string>(),
                                results.at("suite").at("sha256").get<std::string>().substr(0, 12));
  for (const Json& arm : results.at("arms")) append_arm(arm, out);
  for (const Json& reason : results.at("invalid")) out += "invalid: " + reason.get<std::string>() + "\n";
  return out;
}

}  // namespace stet
