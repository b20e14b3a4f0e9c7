#include "lab/packet/verify.h"

#include "base/error.h"
#include "lab/packet/judge.h"
#include "base/strict_json.h"

namespace stet {
namespace {

constexpr size_t kShownValue = 120;

std::string shown_member(const Json& value) {
  std::string text = dump_line(value);
  if (text.size() > kShownValue) text = text.substr(0, kShownValue) + "...";
  return text;
}

std::string different(const std::string& where, const Json& stored, const Json& computed) {
  return fmt::format("{} is {}, and the events give {}", where, shown_member(stored), shown_member(computed));
}

std::string below(const std::string& where, const std::string& name) {
  return where.empty() ? name : where + "/" + name;
}

std::string compare(const std::string& where, const Json& stored, const Json& computed) {
  if (stored.type() != computed.type() || !stored.is_structured())
    return stored == computed ? "" : different(where, stored, computed);
  if (stored.is_array()) {
    for (size_t i = 0; i < stored.size() && i < computed.size(); ++i)
      if (std::string found = compare(below(where, std::to_string(i)), stored[i], computed[i]); !found.empty())
        return found;
  } else {
    for (const auto& [key, value] : computed.items()) {
      if (!stored.contains(key)) return fmt::format("{} is missing", below(where, key));
      if (std::string found = compare(below(where, key), stored[key], value); !found.empty()) return found;
    }
  }
  if (stored.size() != computed.size())
    return fmt::format("{} has {} members, and the events give {}", where.empty() ? "it" : where, stored.size(),
                       computed.size());
  return "";
}

uint64_t count_values(const Json& json) {
  if (!json.is_structured()) return 1;
  uint64_t n = 0;
  for (const Json& value : json) n += count_values(value);
  return n;
}

void check_rules(const Json& stored) {
  if (!stored.contains("rules") || !stored["rules"].is_number_integer()) return;  // not equal to any, then
  if (stored["rules"] != kRulesVersion)
    fail(Code::kUnsupported,
         "results.json was computed by version {} of the rules, and this stet has version {}; use the one that made it",
         dump_line(stored["rules"]), kRulesVersion);
}

}  // namespace

std::string first_json_difference(const std::string& stored, const std::string& computed) {
  if (stored == computed) return "";
  Json a;
  try {
    a = parse_json(stored, "results.json");
  } catch (const Error& e) {
    return e.what();
  }
  const std::string found = compare("", a, parse_json(computed, "the results"));
  return found.empty() ? "results.json holds the same values, written in another way" : "results.json: " + found;
}

VerifyReport verify_packet(const std::string& path, const std::string& signers) {
  VerifyReport report;
  report.packet = read_packet(path);
  const Packet& p = report.packet;
  for (const RequestRecord& r : p.requests) {
    report.frames += r.chunks.size();
    report.tokens += r.token_ids().size();
  }
  Json stored;
  try {
    stored = parse_json(p.results_json, "results.json");
  } catch (const Error&) {
    stored = nullptr;  // the comparison says so
  }
  check_rules(stored);
  const std::string computed = recompute_results(p);
  report.mismatch = first_json_difference(p.results_json, computed);
  const Json results = parse_json(computed, "the results");
  report.values = count_values(results);
  report.kind = results["kind"].get<std::string>();
  const Json& inner = results["results"];
  if (inner.is_object() && inner.contains("verdict") && inner["verdict"].is_string())
    report.verdict = inner["verdict"].get<std::string>();
  report.signatures = check_signatures(p.path, signers);
  return report;
}

}  // namespace stet
