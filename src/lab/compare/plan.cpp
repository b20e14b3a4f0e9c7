#include "lab/compare/plan.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/strict_json.h"

namespace stet {
namespace {

constexpr std::array<std::string_view, 3> kEqual = {"nothing", "ids", "sequences"};
constexpr std::array<std::string_view, 6> kRequestFigures = {"rate_100",  "rate_all",     "server_rate",
                                                             "wall_rate", "prefill_rate", "ttft"};
constexpr uint32_t kMostPlanRounds = 1000, kMostResamples = 1000000, kMostRepeats = 100;

Json arm_json(ArmKind kind, const std::string& shown) { return {{"kind", arm_kind_name(kind)}, {"shown", shown}}; }

Json suite_json(const ComparePlan& plan) {
  if (plan.measures()) return nullptr;
  Json steps = Json::array();
  for (const PlannedStep& s : plan.steps) steps.push_back({{"id", s.id}, {"class", s.step_class}});
  return {{"id", plan.suite_id},           {"version", plan.suite_version},
          {"sha256", plan.suite_sha256},   {"cold", plan.cold},
          {"nonce_seed", plan.nonce_seed}, {"max_tokens", plan.max_tokens ? Json(*plan.max_tokens) : Json(nullptr)},
          {"ignore_eos", plan.ignore_eos}, {"steps", steps}};
}

Json figures_json(const ComparePlan& plan) {
  Json figures = Json::array();
  for (const Figure& f : plan.figures)
    figures.push_back({{"name", f.name}, {"better", f.higher_is_better ? "higher" : "lower"}});
  return figures;
}

ArmKind kind_of(std::string_view name) {
  for (ArmKind k : {ArmKind::serve, ArmKind::command, ArmKind::endpoint, ArmKind::measure})
    if (arm_kind_name(k) == name) return k;
  fail(Code::kInput, "the plan has an arm of the unknown kind '{}'", name);
}

void read_arm(StrictObject& arms, const char* name, ArmKind& kind, std::string& shown) {
  StrictObject arm(arms.any(name), fmt::format("arm {} of the plan", name));
  kind = kind_of(arm.text("kind"));
  shown = arm.text("shown");
  arm.finish();
}

void read_suite(const Json& json, ComparePlan& plan) {
  StrictObject suite(json, "the suite of the plan");
  plan.suite_id = suite.text("id");
  plan.suite_version = suite.u32("version");
  plan.suite_sha256 = suite.text("sha256");
  plan.cold = suite.flag("cold");
  plan.nonce_seed = suite.optional_u64("nonce_seed").value_or(0);
  if (!suite.any("max_tokens").is_null()) plan.max_tokens = suite.u32("max_tokens");
  plan.ignore_eos = suite.flag("ignore_eos");
  std::set<std::string> ids;
  for (const Json& entry : suite.any("steps")) {
    StrictObject step(entry, "a step of the plan");
    plan.steps.push_back({step.text("id"), step.text("class")});
    step.finish();
    if (!ids.insert(plan.steps.back().id).second)
      fail(Code::kInput, "the plan has the step '{}' twice", plan.steps.back().id);
  }
  suite.finish();
  if (plan.steps.empty()) fail(Code::kInput, "the suite of the plan has no steps");
}

Figure read_figure(const Json& entry, bool of_requests) {
  StrictObject object(entry, "a figure of the plan");
  Figure figure{object.text("name"), true};
  const std::string better = object.text("better");
  object.finish();
  if (better != "higher" && better != "lower")
    fail(Code::kInput, "the figure '{}' has better: '{}'", figure.name, better);
  figure.higher_is_better = better == "higher";
  if (of_requests && std::count(kRequestFigures.begin(), kRequestFigures.end(), figure.name) == 0)
    fail(Code::kInput, "requests have no figure '{}'; they have {}", figure.name, fmt::join(kRequestFigures, ", "));
  return figure;
}

void read_lists(StrictObject& object, ComparePlan& plan) {
  for (const Json& entry : object.any("figures")) plan.figures.push_back(read_figure(entry, !plan.measures()));
  for (const Json& entry : object.any("witnesses")) {
    StrictObject witness(entry, "a witness of the plan");
    plan.witnesses.push_back({witness.text("option"), witness.text("counter")});
    witness.finish();
    check_counter(plan.witnesses.back().counter);
  }
  const Json& points = object.any("points");
  for (const Json& point : points) {
    if (!point.is_string()) fail(Code::kInput, "a point of the plan is no text");
    plan.points.push_back(point.get<std::string>());
  }
  for (const Json& cited : object.any("cites")) {
    if (!cited.is_number_integer()) fail(Code::kInput, "the plan cites something that is no entry of a journal");
    plan.cites.push_back(cited.get<int64_t>());
  }
  if (plan.measures() == plan.points.empty())
    fail(Code::kInput, "a plan has points where its arms measure, and only there");
  if (!plan.measures() && plan.figures.empty()) fail(Code::kInput, "the plan names no figure");
}

void read_bootstrap(const Json& json, Bootstrap& bootstrap) {
  StrictObject object(json, "the bootstrap of the plan");
  bootstrap.seed = object.optional_u64("seed").value_or(0);
  bootstrap.resamples = static_cast<uint32_t>(object.whole("resamples", 100, kMostResamples));
  const Json& confidence = object.any("confidence");
  if (!confidence.is_number()) fail(Code::kInput, "the confidence of the plan is no number");
  bootstrap.confidence = confidence.get<double>();
  object.finish();
  if (!(bootstrap.confidence >= 0.5 && bootstrap.confidence <= 0.999))
    fail(Code::kInput, "the confidence of the plan is {}, outside 0.5 .. 0.999", bootstrap.confidence);
}

}  // namespace

std::string_view equal_name(Equal equal) { return kEqual[static_cast<size_t>(equal)]; }

Equal parse_equal(std::string_view name) {
  for (size_t i = 0; i < kEqual.size(); ++i)
    if (kEqual[i] == name) return static_cast<Equal>(i);
  fail(Code::kUsage, "'{}' is nothing that arms can have in common; choose {}", name, fmt::join(kEqual, ", "));
}

std::optional<Figure> figure_by_unit(std::string_view name) {
  for (std::string_view end : {"_per_second", "_gb_s"})
    if (name.ends_with(end)) return Figure{std::string(name), true};
  for (std::string_view end : {"_seconds", "_ms", "_us", "_ns", "_bytes"})
    if (name.ends_with(end)) return Figure{std::string(name), false};
  return std::nullopt;
}

std::string plan_json(const ComparePlan& plan) {
  Json witnesses = Json::array();
  for (const Witness& w : plan.witnesses) witnesses.push_back({{"option", w.option}, {"counter", w.counter}});
  Json json = {{"kind", "compare"},
                     {"schema", "stet-compare-plan-1"},
                     {"label", plan.label},
                     {"created", plan.created},
                     {"frozen", plan.frozen_in_a_file ? "in a file" : "at the start"},
                     {"arms", {{"A", arm_json(plan.a_kind, plan.a_shown)}, {"B", arm_json(plan.b_kind, plan.b_shown)}}},
                     {"suite", suite_json(plan)},
                     {"points", plan.points},
                     {"figures", figures_json(plan)},
                     {"aa_rounds", plan.aa_rounds},
                     {"rounds", plan.rounds},
                     {"equal", equal_name(plan.equal)},
                     {"witnesses", witnesses},
                     {"bootstrap",
                      {{"seed", plan.bootstrap.seed},
                       {"resamples", plan.bootstrap.resamples},
                       {"confidence", plan.bootstrap.confidence}}},
                     {"rules", Json::parse(rules_json(plan.rules))},
                     {"authority", authority_name(plan.authority)},
                     {"idea", plan.idea},
                     {"cites", plan.cites}};
  if (plan.disturbed_repeats) json["disturbed_repeats"] = *plan.disturbed_repeats;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

ComparePlan parse_plan(std::string_view json) {
  const Json parsed = parse_json(json, "the plan");
  StrictObject object(parsed, "the plan");
  if (object.text("kind") != "compare" || object.text("schema") != "stet-compare-plan-1")
    fail(Code::kInput, "the plan is none of stet compare, or of another version");
  ComparePlan plan;
  plan.label = object.text("label");
  plan.created = object.text("created");
  plan.frozen_in_a_file = object.text("frozen") == "in a file";
  StrictObject arms(object.any("arms"), "the arms of the plan");
  read_arm(arms, "A", plan.a_kind, plan.a_shown);
  read_arm(arms, "B", plan.b_kind, plan.b_shown);
  arms.finish();
  if ((plan.a_kind == ArmKind::measure) != (plan.b_kind == ArmKind::measure))
    fail(Code::kInput, "one arm of the plan measures and the other serves: they have no figure in common");
  const Json& suite = object.any("suite");
  if (plan.measures() != suite.is_null()) fail(Code::kInput, "a plan has a suite where its arms serve, and only there");
  if (!plan.measures()) read_suite(suite, plan);
  read_lists(object, plan);
  plan.aa_rounds = static_cast<uint32_t>(object.whole("aa_rounds", 1, kMostPlanRounds));
  plan.rounds = static_cast<uint32_t>(object.whole("rounds", 1, kMostPlanRounds));
  if (object.has("disturbed_repeats"))
    plan.disturbed_repeats = static_cast<uint32_t>(object.whole("disturbed_repeats", 0, kMostRepeats));
  plan.equal = parse_equal(object.text("equal"));
  read_bootstrap(object.any("bootstrap"), plan.bootstrap);
  plan.rules = parse_rules(object.object("rules"), "the rules of the plan");
  plan.authority = parse_authority(object.text("authority"));
  plan.idea = object.text("idea");
  object.finish();
  return plan;
}

std::string subject_sha256(const ComparePlan& plan) {
  const Json subject = {{"A", arm_json(plan.a_kind, plan.a_shown)},
                        {"B", arm_json(plan.b_kind, plan.b_shown)},
                        {"suite", plan.suite_sha256},
                        {"steps", plan.steps.size()},
                        {"max_tokens", plan.max_tokens.value_or(0)},
                        {"points", plan.points},
                        {"figures", figures_json(plan)}};
  const std::string text = dump_line(subject);
  return sha256_hex(text.data(), text.size());
}

std::vector<Leg> legs_of(const ComparePlan& plan) {
  std::vector<Leg> legs;
  uint32_t starts[2] = {0, 0};
  const uint32_t points = std::max<uint32_t>(1, static_cast<uint32_t>(plan.points.size()));
  for (const bool aa : {true, false})
    for (uint32_t point = 0; point < points; ++point)
      for (uint32_t round = 0; round < (aa ? plan.aa_rounds : plan.rounds); ++round)
        for (uint32_t slot = 0; slot < 4; ++slot) {
          const bool side_b = slot == 1 || slot == 2;
          const bool arm_b = side_b && !aa;
          legs.push_back({aa, round, slot, side_b, arm_b ? 'B' : 'A', starts[arm_b]++, point});
        }
  return legs;
}

}  // namespace stet
