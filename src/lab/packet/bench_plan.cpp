#include "lab/packet/bench_plan.h"

#include <set>

#include "base/error.h"

namespace stet {
namespace {

constexpr int64_t kMaxStarts = 1000;

void read_suite(const Json& json, BenchPlan& plan) {
  StrictObject suite(json, "plan.json, 'suite'");
  plan.cold = suite.flag("cold");
  plan.repeats_allowed = suite.flag("repeats_allowed");
  plan.suite = {{"id", suite.text("id")},
                {"version", suite.u32("version")},
                {"sha256", suite.text("sha256")},
                {"cold", plan.cold},
                {"repeats_allowed", plan.repeats_allowed}};
  const Json& steps = suite.any("steps");
  if (!steps.is_array() || steps.empty()) fail(Code::kInput, "plan.json, 'suite': 'steps' is no list of steps");
  std::set<std::string> ids;
  for (const Json& item : steps) {
    StrictObject step(item, fmt::format("plan.json, step {} of the suite", plan.steps.size()));
    BenchStep s{step.text("id"), step.text("class"), std::nullopt};
    if (step.has("expect") && !step.any("expect").is_null()) s.expect = step.text("expect");
    if (!ids.insert(s.id).second) fail(Code::kInput, "plan.json: there are two steps '{}'", s.id);
    plan.steps.push_back(std::move(s));
  }
}

BenchArm read_arm(const Json& json, size_t index) {
  StrictObject object(json, fmt::format("plan.json, arm {}", index));
  BenchArm arm;
  arm.name = object.text("name");
  const std::string role = object.text("role");
  if (role != "teacher" && role != "candidate")
    fail(Code::kInput, "{}: the role is '{}'; teacher or candidate are possible", object.what(), role);
  arm.teacher = role == "teacher";
  arm.starts = static_cast<uint32_t>(object.whole("starts", 1, kMaxStarts));
  arm.speculative = object.flag("speculative");
  arm.fixed_length = object.flag("fixed_length");
  if (arm.teacher && arm.speculative)
    fail(Code::kInput, "{}: a teacher is a plain decoder and does not speculate", object.what());
  return arm;
}

void read_arms(const Json& json, BenchPlan& plan) {
  if (!json.is_array() || json.empty()) fail(Code::kInput, "plan.json: 'arms' is no list of arms");
  std::set<std::string> names;
  uint32_t teachers = 0;
  for (const Json& item : json) {
    plan.arms.push_back(read_arm(item, plan.arms.size()));
    if (!names.insert(plan.arms.back().name).second)
      fail(Code::kInput, "plan.json: there are two arms '{}'", plan.arms.back().name);
    teachers += plan.arms.back().teacher ? 1 : 0;
  }
  if (teachers > 1) fail(Code::kInput, "plan.json: {} teachers; one is possible", teachers);
}

}  // namespace

const BenchArm* BenchPlan::teacher_arm() const {
  for (const BenchArm& arm : arms)
    if (arm.teacher) return &arm;
  return nullptr;
}

BenchPlan read_bench_plan(std::string_view plan_json) {
  const Json json = parse_json(plan_json, "plan.json");
  StrictObject object(json, "plan.json");
  BenchPlan plan;
  read_suite(object.any("suite"), plan);
  read_arms(object.any("arms"), plan);
  const Json& teacher = object.any("teacher");
  if (!teacher.is_null()) {
    plan.teacher_manifest = StrictObject(teacher, "plan.json, 'teacher'").text("manifest_sha256");
    if (plan.teacher_arm() != nullptr)
      fail(Code::kInput, "plan.json: a teacher packet and an arm that is the teacher; one of them is possible");
  }
  return plan;
}

}  // namespace stet
