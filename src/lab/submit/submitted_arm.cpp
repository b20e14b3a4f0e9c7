#include "lab/submit/submitted_arm.h"

#include <fmt/ranges.h>

#include "base/error.h"

namespace stet {
namespace {

const BenchArm& chosen(const BenchPlan& plan, const std::string& name) {
  std::vector<std::string> names;
  std::vector<const BenchArm*> candidates;
  for (const BenchArm& arm : plan.arms) {
    if (arm.name == name) return arm;
    names.push_back(arm.name);
    if (!arm.teacher) candidates.push_back(&arm);
  }
  if (!name.empty()) fail(Code::kUsage, "the packet has no arm '{}'; it has {}", name, fmt::join(names, ", "));
  if (candidates.size() == 1) return *candidates[0];
  if (plan.arms.size() == 1) return plan.arms[0];
  fail(Code::kUsage, "the packet has the arms {}: --arm NAME says which", fmt::join(names, ", "));
}

// The start with the lowest median, which is the headline; 0 where no start has one.
uint32_t lowest_start(const Json& arm) {
  uint32_t lowest = 0;
  Json least;
  for (const Json& start : arm.at("by_start")) {
    const Json& median = start.at("median_first_100_tokens_per_second");
    if (!median.is_number() || (least.is_number() && least.get<double>() <= median.get<double>())) continue;
    least = median;
    lowest = start.at("start").get<uint32_t>();
  }
  return lowest;
}

}  // namespace

Json SubmittedArm::identity(const std::string& member) const {
  Json value;
  for (const Json& identity : identities) {
    const auto it = identity.find(member);
    if (it == identity.end() || *it == "unproven" || (!value.is_null() && value != *it)) return nullptr;
    value = *it;
  }
  return value;
}

std::string SubmittedArm::text(const std::string& member) const {
  const Json value = identity(member);
  return value.is_string() ? value.get<std::string>() : "";
}

const Json& SubmittedArm::start_figures() const {
  static const Json kNone;
  for (const Json& start : arm.at("by_start"))
    if (start.at("start") == lowest) return start;
  return kNone;
}

std::vector<const RequestRecord*> SubmittedArm::lowest_requests() const {
  std::vector<const RequestRecord*> list;
  for (const RequestRecord* r : requests)
    if (r->start == lowest) list.push_back(r);
  return list;
}

SubmittedArm submitted_arm(const Packet& packet, const std::string& name) {
  const Json stored = parse_json(packet.results_json, "results.json");
  if (stored.at("kind") != "bench")
    fail(Code::kUsage, "a packet of the kind {} has no row for a board; stet bench makes one that can have one",
         dump_line(stored.at("kind")));
  SubmittedArm s;
  s.packet = &packet;
  s.plan = read_bench_plan(packet.plan_json);
  s.planned = chosen(s.plan, name);
  s.results = stored.at("results");
  for (const Json& arm : s.results.at("arms"))
    if (arm.at("name") == s.planned.name) s.arm = arm;
  STET_CHECK(s.arm.is_object());
  for (const StartRecord& start : packet.starts)
    if (start.arm == s.planned.name) s.identities.push_back(parse_json(start.identity_json, "the identity of a start"));
  for (const RequestRecord& r : packet.requests)
    if (r.arm == s.planned.name) s.requests.push_back(&r);
  s.lowest = lowest_start(s.arm);
  return s;
}

}  // namespace stet
