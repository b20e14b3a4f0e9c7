#include "lab/spec_eval/trace.h"

#include "base/error.h"
#include "lab/packet/figures_json.h"
#include "lab/spec_eval/manifest.h"

namespace stet {
namespace {

std::string ending(const RequestRecord& r, const ChunkEvent& c, bool last) {
  if (last && r.finish_reason == "stop") return "early_eos";
  if (c.depth.value_or(0) == 0) return "no_speculation";
  return c.accepted == c.depth ? "bonus" : "rejection";
}

Json milliseconds(int64_t ns) { return static_cast<double>(ns) / 1e6; }

}  // namespace

void write_traces(const Packet& packet, const std::function<void(const std::string&)>& sink) {
  const Json plan = parse_json(packet.plan_json, "plan.json");
  if (!plan.is_object() || plan.value("kind", "") != "spec-eval")
    fail(Code::kUsage, "the packet is none of stet spec-eval; its events.jsonl holds every frame");
  const EvalManifest manifest = parse_manifest(packet.plan_json);
  for (const RequestRecord& r : packet.requests) {
    size_t position = 0;
    int64_t before = r.sent_ns;
    for (size_t i = 0; i < r.chunks.size(); ++i) {
      const ChunkEvent& c = r.chunks[i];
      const std::vector<int32_t> ids = c.token_ids.value_or(std::vector<int32_t>{});
      const bool target_only = r.arm == eval_arm_name(EvalArm::target);
      const Json context = r.prompt_token_ids ? Json(r.prompt_token_ids->size() + position) : Json(nullptr);
      sink(dump_line({{"request_id", r.id},
                      {"arm", r.arm},
                      {"pack", r.start < manifest.contract.packs.size() ? manifest.contract.packs[r.start] : ""},
                      {"step", r.step_id},
                      {"cycle", i},
                      {"context_length", context},
                      {"generated_position", position},
                      {"proposed_depth", c.depth ? Json(*c.depth) : Json(nullptr)},
                      {"accepted_prefix_length", c.accepted ? Json(*c.accepted) : Json(nullptr)},
                      {"emitted_tokens", ids.size()},
                      {"emitted_token_ids", ids},
                      {"rejection_or_bonus", ending(r, c, i + 1 == r.chunks.size())},
                      {"policy_inputs", target_only ? Json::array() : Json(manifest.policy_inputs)},
                      {"draft_and_policy_ms", c.draft_ns ? milliseconds(*c.draft_ns) : Json(nullptr)},
                      {"cycle_ms", milliseconds(c.client_ns - before)},
                      {"target_cycles", 1},
                      {"verifier_width", c.depth ? Json(*c.depth + 1) : Json(nullptr)}}));
      position += ids.size();
      before = c.client_ns;
    }
  }
}

}  // namespace stet
