// Evaluations that never ran, for the tests of the judge and of the runner.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/strict_json.h"
#include "lab/spec_eval/eval_verdict.h"

namespace stet {

inline uint32_t four_bytes_a_token(std::string_view text) { return static_cast<uint32_t>((text.size() + 3) / 4); }

inline std::string fake_identity(EvalArm arm) {
  const bool drafts = arm != EvalArm::target;
  return dump_line({{"program", "stet"},
                    {"build_id", "b1"},
                    {"numerics_version", 1},
                    {"model_sha256", std::string(64, 'a')},
                    {"tokenizer_sha256", std::string(64, 'c')},
                    {"draft", drafts ? "model" : "none"},
                    {"draft_depth", static_cast<int>(arm)},
                    {"history_accelerated", false},
                    {"context", 8192}});
}

inline EvalManifest fake_manifest() {
  EvalManifest m;
  m.label = "test";
  m.created = "2026-11-30T00:00:00Z";
  m.contract = spec_eval_contract();
  m.policy = "three proposals, always";
  m.policy_inputs = {"current prefix tokens"};
  m.attested = true;
  m.bootstrap_seed = 7;
  for (const EvalArm arm : kEvalArms)
    m.arms[static_cast<size_t>(arm)] = {R"({"draft":"x"})", frozen_identity(fake_identity(arm))};
  return m;
}

// The contract with few requests.
inline SpecEvalContract small_contract() {
  Json json = Json::parse(spec_eval_contract().bytes);
  json["short"] = {{"mixed", 2}, {"exact", 1}};
  json["long"] = {{"2048", 1}};
  json["logprob_positions"] = 8;
  return parse_spec_eval_contract(json.dump(), "a small contract");
}

// Proposals, what is accepted of them in each cycle in turn, and how long a cycle takes.
struct FakeSpeed {
  uint32_t depth = 0;
  std::vector<uint32_t> accepted = {0};
  int64_t cycle_ns = 10'000'000;
};

inline FakeSpeed fake_speed(EvalArm arm) {
  if (arm == EvalArm::target) return {};
  if (arm == EvalArm::current) return {1, {1, 0, 1}, 11'000'000};
  return {3, {3, 1, 2, 0, 2}, 10'000'000};
}

inline int32_t fake_token(uint64_t prompt, uint32_t i) {
  return static_cast<int32_t>((prompt + i * uint64_t{104729} + i * uint64_t{i} * 31) % 30011);
}

// The answer to a request; tasks with an exact answer end before their limit.
inline RequestRecord fake_answer(const PlannedRequest& planned, const FakeSpeed& speed, bool ends_early, int64_t now) {
  RequestRecord r;
  r.id = planned.step_id;
  r.prompt = messages_json(planned.messages);
  r.sampling = sampling_json(planned);
  r.max_tokens = planned.max_tokens;
  r.sent_ns = now;
  r.http_status = 200;
  const uint64_t prompt = xxh3(r.prompt.data(), r.prompt.size()) % 30011;
  r.prompt_token_ids = std::vector<int32_t>(four_bytes_a_token(planned.messages[0].content) + 3, 5);
  const uint32_t length = ends_early ? std::max(1u, planned.max_tokens / 2) : planned.max_tokens;
  int64_t at = now + 50'000'000;
  for (uint32_t i = 0, cycle = 0; i < length && !r.cancelled_by_client; ++cycle, at += speed.cycle_ns) {
    const uint32_t kept = std::min(speed.accepted[cycle % speed.accepted.size()], length - i - 1);
    ChunkEvent c;
    c.client_ns = at;
    c.server_ns = at;
    c.depth = speed.depth;
    c.accepted = kept;
    c.draft_ns = speed.depth * 100'000;
    c.token_ids.emplace();
    if (planned.logprobs) c.logprobs.emplace();
    for (uint32_t k = 0; k <= kept; ++k, ++i) {
      c.token_ids->push_back(fake_token(prompt, i));
      if (planned.logprobs) c.logprobs->push_back(-0.5 - fake_token(prompt, i) / 65536.0);
    }
    r.chunks.push_back(std::move(c));
    r.cancelled_by_client = planned.cancel_after_tokens && i >= *planned.cancel_after_tokens;
  }
  r.end_ns = at;
  r.complete = !r.cancelled_by_client;
  if (r.complete) r.finish_reason = ends_early ? "stop" : "length";
  r.usage = {static_cast<uint32_t>(r.prompt_token_ids->size()), static_cast<uint32_t>(r.token_ids().size()), 0};
  return r;
}

inline RevealedPack fake_pack(const EvalManifest& m, size_t index) {
  RevealedPack pack;
  pack.name = m.contract.packs[index];
  pack.seed = 11 + index;
  pack.drawn = true;
  pack.requests = generate_pack(m.contract, pack.seed, pack.name, m.scale, four_bytes_a_token);
  return pack;
}

// A packet in which every arm answered everything, with these speeds.
using SpeedOf = FakeSpeed (*)(EvalArm arm);
inline Packet fake_evaluation(const EvalManifest& m, SpeedOf speed_of = fake_speed, size_t packs = 2) {
  Packet packet;
  packet.plan_json = manifest_json(m);
  packet.identity_json = "{}";
  int64_t now = 1'000'000'000;
  uint64_t number = 0;
  for (size_t p = 0; p < packs; ++p) {
    const RevealedPack pack = fake_pack(m, p);
    packet.notes.emplace_back(std::string(kPackNote), pack_note(pack));
    for (const EvalArm arm : launch_order(p)) {
      const std::string name(eval_arm_name(arm));
      packet.starts.push_back({name, static_cast<uint32_t>(p), true, fake_identity(arm), now});
      uint32_t index = 0;
      for (const EvalStep& step : eval_steps(m.contract, pack.requests)) {
        const PackRequest& request = pack.requests[step.request];
        RequestRecord r = fake_answer(planned_step(step, request, fmt::format("{:032x}", number++)), speed_of(arm),
                                      request.category == "exact", now);
        r.arm = name;
        r.start = static_cast<uint32_t>(p);
        r.index = index++;
        r.step_id = step.id;
        r.step_class = class_of(request);
        now = r.end_ns + 1'000'000;
        packet.requests.push_back(std::move(r));
      }
    }
  }
  return packet;
}

}  // namespace stet
