// A benchmark and a comparison that never ran, for the tests of the report.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "lab/compare/compare_test_util.h"
#include "lab/packet/judge.h"
#include "lab/packet/packet_fixture_test.h"
#include "base/strict_json.h"

namespace stet {

inline constexpr const char* kReportClasses[] = {"operations", "code", "prose", "analysis", "documentation"};

inline std::string report_step(uint32_t index) { return fmt::format("prompt-{:02}", index); }

// A plain teacher and an arm that speculates, both with the same ids: cycles of up to five tokens, of which a pattern
// stood.
inline RequestRecord report_request(const std::string& arm, uint32_t start, uint32_t index) {
  FakeBench base;
  base.steps.assign(index + 1, report_step(index));
  RequestRecord r = base.request(start, index);
  r.arm = arm;
  r.id = fmt::format("{}-{}-{}", arm, start, index);
  r.step_class = kReportClasses[index % 5];
  if (arm == "teacher") return r;
  std::vector<ChunkEvent> chunks;
  int64_t now = r.chunks.front().client_ns;
  for (size_t i = 0; i < r.chunks.size();) {
    const uint32_t accepted = i == 0 ? 0 : static_cast<uint32_t>((i * 7 + index * 3 + start) % 5),
                   n = std::min<uint32_t>(accepted + 1, static_cast<uint32_t>(120 - i));
    ChunkEvent chunk = r.chunks[i];
    chunk.client_ns = now;
    chunk.server_ns = now - 50'000;
    chunk.depth = i == 0 ? 0 : 4;
    chunk.accepted = n - 1;
    for (uint32_t k = 1; k < n; ++k) chunk.token_ids->push_back(r.chunks[i + k].token_ids->front());
    chunks.push_back(chunk);
    i += n;
    now += 11'000'000 + 400'000 * static_cast<int64_t>((index * 5 + start) % 7);
  }
  r.chunks = chunks;
  r.end_ns = chunks.back().client_ns + 1'000'000;
  r.after = FakeBench::sample(r.end_ns, 1300);
  return r;
}

inline Packet report_bench(uint32_t steps = 12) {
  FakeBench base;
  base.steps.clear();
  for (uint32_t i = 0; i < steps; ++i) base.steps.push_back(report_step(i));
  Json plan = base.plan_json();
  for (uint32_t i = 0; i < steps; ++i) plan["suite"]["steps"][i]["class"] = kReportClasses[i % 5];
  const auto arm = [](const char* name, const char* role, bool speculative) {
    return Json{{"name", name}, {"role", role}, {"starts", 2}, {"speculative", speculative}, {"fixed_length", false}};
  };
  plan["label"] = "n-gram draft, depth 4";
  plan["arms"] = Json::array({arm("teacher", "teacher", false), arm("A", "candidate", true)});
  Packet p;
  p.path = "packets/bench-1";
  p.plan_json = plan.dump(1);
  p.plan_sha256 = std::string(64, 'b');
  p.identity_json = R"({"client":{"program":"stet","build_id":"0123"}})";
  for (const char* name : {"teacher", "A"})
    for (uint32_t s = 0; s < 2; ++s) {
      const std::string draft = name[0] == 'A' ? "ngram" : "none";
      p.starts.push_back({name, s, true,
                          R"({"build_id":"0123456789abcdef","model":"SmolLM2 135M Instruct","kv":"f16","draft":")" +
                              draft + R"(","history_accelerated":)" + (name[0] == 'A' ? "true" : "false") + "}",
                          1000 + s});
      for (uint32_t i = 0; i < steps; ++i) p.requests.push_back(report_request(name, s, i));
    }
  p.results_json = recompute_results(p);
  return p;
}

// `judge`: of another kind than the registered ones too.
inline std::string results_of(const Packet& p, std::string_view kind, std::string (*judge)(const Packet&)) {
  const Json results = {{"kind", kind}, {"plan_sha256", p.plan_sha256}, {"results", parse_json(judge(p), "results")}};
  return results.dump(1) + "\n";
}

// What is wrong with the nesting of tags; empty: nothing.
inline std::string unbalanced(std::string_view html) {
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != html.npos; at = html.find('<', at + 1)) {
    const size_t end = html.find('>', at);
    if (end == html.npos) return "a tag without end";
    const std::string_view tag = html.substr(at + 1, end - at - 1);
    if (tag.starts_with('!') || tag.ends_with('/')) continue;
    const std::string name(
        tag.substr(tag.starts_with('/') ? 1 : 0, tag.find_first_of(" \n") - (tag.starts_with('/') ? 1 : 0)));
    if (name == "meta" || name == "link" || name == "br") continue;
    if (!tag.starts_with('/')) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back());
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> stays open";
}

inline size_t count_of(std::string_view text, std::string_view part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

}  // namespace stet
