// The judge of packets of `stet bench`.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lab/packet/bench_arm.h"
#include "lab/packet/judge.h"

namespace stet {
namespace {

std::vector<std::string> strangers(const BenchPlan& plan, const Packet& packet) {
  std::set<std::string> planned, found;
  for (const BenchArm& arm : plan.arms) planned.insert(arm.name);
  for (const StartRecord& s : packet.starts)
    if (!planned.contains(s.arm)) found.insert(s.arm);
  std::vector<std::string> reasons;
  for (const std::string& name : found) reasons.push_back(fmt::format("arm '{}' is not in the plan", name));
  return reasons;
}

// Of the arms under test; a teacher alone is under test itself.
std::string overall(const std::vector<std::pair<const BenchArm*, std::string>>& verdicts, bool strange) {
  const bool candidates =
      std::any_of(verdicts.begin(), verdicts.end(), [](const auto& v) { return !v.first->teacher; });
  std::string worst = strange ? "invalid" : "valid";
  for (const auto& [arm, verdict] : verdicts) {
    if (candidates && arm->teacher) continue;
    if (verdict == "invalid" || worst == "valid") worst = verdict;
  }
  return worst;
}

Json note_or_null(const Packet& packet, std::string_view name) {
  for (const auto& [note, body] : packet.notes)
    if (note == name) return parse_json(body, "a note");
  return nullptr;
}

}  // namespace

std::string bench_results(const Packet& packet) {
  const BenchPlan plan = read_bench_plan(packet.plan_json);
  std::optional<Teacher> teacher;
  std::string against;
  Json teacher_arm;
  if (!plan.teacher_manifest.empty()) {
    teacher = teacher_of_notes(packet, plan.teacher_manifest);
    against = "teacher packet " + plan.teacher_manifest;
  } else if (const BenchArm* arm = plan.teacher_arm()) {
    teacher_arm = BenchArmJudge(plan, *arm, packet).results();
    teacher = teacher_of_arm(teacher_arm);
    against = fmt::format("arm '{}'", arm->name);
  }
  std::vector<std::pair<const BenchArm*, std::string>> verdicts;
  Json arms = Json::array();
  for (const BenchArm& arm : plan.arms) {
    BenchArmJudge judge(plan, arm, packet);
    if (!arm.teacher) judge.compare(teacher ? &*teacher : nullptr, against);
    verdicts.emplace_back(&arm, judge.verdict());
    arms.push_back(judge.results());
  }
  const std::vector<std::string> strange = strangers(plan, packet);
  return dump_line({{"verdict", overall(verdicts, !strange.empty())},
                    {"invalid", strange},
                    {"suite", plan.suite},
                    {"ledger", note_or_null(packet, "ledger")},
                    {"arms", arms}});
}

}  // namespace stet
