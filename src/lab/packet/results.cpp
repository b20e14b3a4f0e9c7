#include <fmt/format.h>

#include "base/error.h"
#include "lab/packet/judge.h"
#include "base/strict_json.h"

namespace stet {

namespace {

constexpr Judge kJudges[] = {
#define JUDGE(kind, function) {kind, function},
#include "lab/packet/judges.def"
#undef JUDGE
};

}  // namespace

const Judge& judge_of(std::string_view kind) {
  std::vector<std::string_view> kinds;
  for (const Judge& judge : kJudges) {
    if (judge.kind == kind) return judge;
    kinds.push_back(judge.kind);
  }
  fail(Code::kUnsupported, "the plan is of kind '{}'; this stet judges: {}", kind, fmt::join(kinds, ", "));
}

std::string recompute_results(const Packet& packet) {
  const Json plan = parse_json(packet.plan_json, "plan.json");
  const std::string kind = StrictObject(plan, "plan.json").text("kind");
  const Json results = {{"rules", kRulesVersion},
                        {"kind", kind},
                        {"plan_sha256", packet.plan_sha256},
                        {"results", parse_json(judge_of(kind).results(packet), "the results")}};
  return results.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace stet
