// What stet spec-eval says to people.
#include <fmt/ranges.h>

#include "base/visible_text.h"
#include "cli/spec_eval_flags.h"

namespace stet {
namespace {

std::string number(const std::optional<double>& value, const char* missing = "-") {
  return value ? fmt::format("{:.3f}", *value) : missing;
}

std::string pack_table(const PackVerdict& p) {
  std::string text =
      fmt::format("\n| pack {} | target-only | current | candidate |\n| --- | ---: | ---: | ---: |\n", p.name);
  const auto row = [&](const char* name, auto figure) {
    text += fmt::format("| {} |", name);
    for (const ArmPackFigures& f : p.arms) text += fmt::format(" {} |", number(figure(f)));
    text += "\n";
  };
  row("tokens/s of the whole pack", [](const ArmPackFigures& f) { return std::optional(f.wall_rate); });
  row("median decode tokens/s", [](const ArmPackFigures& f) { return f.median_decode; });
  row("tokens/s, mixed", [](const ArmPackFigures& f) { return f.mixed_wall_rate; });
  row("tokens a cycle", [](const ArmPackFigures& f) { return f.emitted_per_cycle; });
  row("tokens a cycle, mixed", [](const ArmPackFigures& f) { return f.emitted_per_cycle_mixed; });
  row("draft and policy, ms a cycle", [](const ArmPackFigures& f) { return f.draft_and_policy_ms; });
  if (p.loops > 0)
    text += fmt::format("{} of {} requests are left out: the target's answer repeats itself\n", p.loops, p.requests);
  return text;
}

std::string gates_text(const std::vector<EvalGate>& gates, GateGroup group) {
  std::string text;
  for (const EvalGate& g : gates)
    if (g.group == group)
      text += fmt::format("  {:<8}  {}{}: {}\n", gate_state_name(g.state), g.pack.empty() ? "" : g.pack + " ", g.name,
                          g.what);
  return text.empty() ? "" : fmt::format("\n{} gates\n{}", gate_group_name(group), text);
}

}  // namespace

std::string spec_eval_text(const EvalManifest& m, const EvalVerdict& v) {
  std::string text = fmt::format("policy: {}\nreads: {}\n", m.policy, fmt::join(m.policy_inputs, ", "));
  for (const PackVerdict& p : v.packs) text += pack_table(p);
  for (const GateGroup group : {GateGroup::hard, GateGroup::development, GateGroup::promotion})
    text += gates_text(v.gates, group);
  if (m.attested && !v.gates.empty()) {
    text += "\nstated by the operator, and checked by nobody\n";
    for (const std::string& what : m.contract.attested) text += fmt::format("  {}\n", what);
  }
  text += fmt::format("\nverdict: {}{}\n", v.verdict,
                      v.verdict == "screening" ? " (not the contract's own sizes or gates: nothing is promoted)" : "");
  for (const std::string& reason : v.reasons) text += fmt::format("  {}\n", reason);
  return visible_text(text, true);
}

}  // namespace stet
