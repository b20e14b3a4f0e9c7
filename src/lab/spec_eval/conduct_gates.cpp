// Whether it was done as the contract says: packs, order, caches, ids, traces, and what only the operator knows.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lab/metrics/acceptance.h"
#include "base/strict_json.h"
#include "lab/spec_eval/eval_verdict.h"
#include "spec/draft.h"

namespace stet {
namespace {

// Positions of captures at which counters of graphs were seen to roll over.
constexpr uint32_t kRollover = 58;
constexpr uint32_t kFewestAlternations = 8;
constexpr size_t kMeeting = 2, kMostTemplate = 256;

EvalGate hard(const char* name, GateState state, std::string what) {
  return {GateGroup::hard, name, "", state, std::move(what)};
}

GateState passed_if(bool holds) { return holds ? GateState::passed : GateState::failed; }

template <typename Visit>
void for_each_answer(const EvalEvidence& evidence, Visit visit) {
  for (const PackEvidence& e : evidence.packs)
    for (const EvalArm arm : kEvalArms)
      for (size_t i = 0; i < e.steps.size(); ++i) visit(e, arm, i, e.of(arm)[i]);
}

// With a draft of the model's own checkpoint the pack holds its blocks too; the files are the same.
bool of_own_draft(const Json& identity, std::string_view key) {
  return key == "pack" && identity.contains("draft") && identity["draft"].is_string() &&
         is_own_draft(identity["draft"].get<std::string>());
}

EvalGate identity(const EvalManifest& manifest) {
  std::string missing, other;
  Json target = parse_json(manifest.arm(EvalArm::target).identity_json, "an identity");
  for (const EvalArm arm : kEvalArms) {
    const std::string& frozen = manifest.arm(arm).identity_json;
    for (const std::string& member : unproven_members(frozen))
      if (missing.empty()) missing = fmt::format("{} of the {} arm", member, eval_arm_name(arm));
    const Json identity = parse_json(frozen, "an identity");
    for (const auto& [key, value] : identity.items())
      if (!key.starts_with("draft") && !of_own_draft(identity, key) && key != "history_accelerated" && value != target[key] && other.empty())
        other = fmt::format("{} of the {} arm is not the target's", key, eval_arm_name(arm));
  }
  if (target["draft"] != "none") other = "the target-only arm runs with a draft";
  if (!other.empty()) return hard("identity", GateState::failed, other);
  if (!missing.empty()) return hard("identity", GateState::unproven, "nobody says the " + missing);
  return hard("identity", GateState::passed,
              "every start is the program and the files that were frozen; the arms "
              "differ in their drafts alone");
}

// The sizes that a pack claims, against the ids that the arms saw: those of a chat template come on top, and words that
// meet it may be cut in another way.
std::string wrong_size(const PackEvidence& e) {
  for (size_t i = 0; i < e.steps.size(); ++i) {
    const PackRequest& request = e.pack.requests[e.steps[i].request];
    const auto& ids = e.of(EvalArm::target)[i].record->prompt_token_ids;
    if (ids && (ids->size() + kMeeting < request.prompt_tokens || ids->size() > request.prompt_tokens + kMostTemplate))
      return fmt::format("pack {}: {} has {} prompt ids, and the pack says {}", e.pack.name, request.id, ids->size(),
                         request.prompt_tokens);
  }
  return "";
}

EvalGate packs(const EvalManifest& manifest, const EvalEvidence& evidence) {
  std::vector<std::string> faults;
  std::set<std::string> prompts;
  size_t requests = 0;
  for (const PackEvidence& e : evidence.packs) {
    const std::string name = "pack " + e.pack.name;
    for (const std::string& fault : pack_faults(manifest.contract, e.pack.requests, manifest.scale))
      faults.push_back(name + ": " + fault);
    if (const std::string wrong = wrong_size(e); !wrong.empty()) faults.push_back(wrong);
    if (pack_sha256(e.pack.requests) != e.pack.sha256) faults.push_back(name + " was not sent as it was revealed");
    for (const PackRequest& r : e.pack.requests) prompts.insert(r.prompt);
    requests += e.pack.requests.size();
  }
  if (prompts.size() != requests) faults.emplace_back("the packs have a prompt in common");
  if (!faults.empty()) return hard("packs", GateState::failed, fmt::format("{} ({} faults)", faults[0], faults.size()));
  return hard("packs", GateState::passed,
              fmt::format("{} requests of the sizes and diversity of the contract, no prompt twice", requests));
}

EvalGate cold(const EvalEvidence& evidence) {
  uint32_t answers = 0, unproven = 0;
  for_each_answer(evidence, [&](const PackEvidence&, EvalArm, size_t, const StepAnswer& a) {
    ++answers;
    unproven += !a.record->usage.cached_tokens;
  });
  // A warm one is a fault already.
  return hard("cold", unproven > 0 ? GateState::unproven : GateState::passed,
              fmt::format("{} of {} answers used no cached token", answers - unproven, answers));
}

EvalGate reuse(const EvalManifest& manifest) {
  for (const EvalArm arm : {EvalArm::candidate, EvalArm::current}) {
    Json identity = parse_json(manifest.arm(arm).identity_json, "an identity");
    if (identity["history_accelerated"] == true)
      return hard("no_reuse", GateState::failed,
                  fmt::format("the {} policy {} copies from the text so far (history-accelerated), and the contract "
                              "has history and n-gram reuse off",
                              eval_arm_name(arm), dump_line(identity["draft"])));
    if (identity["history_accelerated"] != false)
      return hard("no_reuse", GateState::unproven,
                  fmt::format("the {} policy does not say whether it copies from the text", eval_arm_name(arm)));
  }
  return hard("no_reuse", GateState::passed, "no policy copies from the text so far or from other requests");
}

EvalGate request_ids(const EvalEvidence& evidence) {
  std::set<std::string> ids;
  uint32_t answers = 0, named = 0;
  for_each_answer(evidence, [&](const PackEvidence&, EvalArm, size_t, const StepAnswer& a) {
    ++answers;
    named += !is_request_id(a.record->id);
    ids.insert(a.record->id);
  });
  return hard("request_ids", passed_if(named == 0 && ids.size() == answers),
              fmt::format("{} requests under {} random ids; no label, class or step was sent", answers, ids.size()));
}

// Of every start: requests in order, each another one than that before it.
EvalGate ordered(const EvalManifest& manifest, const EvalEvidence& evidence) {
  uint32_t fewest = UINT32_MAX;
  for (const PackEvidence& e : evidence.packs) {
    uint32_t n = 0;
    for (size_t i = 0; i < e.steps.size(); ++i) n += i == 0 || e.steps[i].request != e.steps[i - 1].request;
    fewest = std::min(fewest, n);
  }
  if (evidence.packs.empty()) fewest = 0;
  const uint32_t wanted = manifest.contract.ordered_requests;
  return hard("ordered", fewest >= wanted && fewest > kRollover ? GateState::passed : GateState::unproven,
              fmt::format("{} requests with changing prompts on every process ({} wanted)", fewest, wanted));
}

EvalGate alternating(const EvalEvidence& evidence) {
  uint32_t fewest = UINT32_MAX;
  for (const PackEvidence& e : evidence.packs) {
    uint32_t changes = 0;
    for (size_t i = 1; i < e.steps.size(); ++i)
      changes += e.pack.requests[e.steps[i].request].is_long != e.pack.requests[e.steps[i - 1].request].is_long;
    fewest = std::min(fewest, changes);
  }
  if (evidence.packs.empty()) fewest = 0;
  return hard("alternating", fewest >= kFewestAlternations ? GateState::passed : GateState::unproven,
              fmt::format("long and short contexts change places {} times in every start", fewest));
}

// Whether a cycle of an answer says everything that a trace has; last: it may have been cut.
bool is_traced(const ChunkEvent& c, bool last) {
  if (!c.depth || !c.accepted || !c.server_ns || !c.draft_ns || !c.token_ids) return false;
  return last || c.token_ids->size() == size_t{*c.accepted} + 1;
}

EvalGate traces(const EvalEvidence& evidence) {
  uint64_t cycles = 0, incomplete = 0;
  for_each_answer(evidence, [&](const PackEvidence&, EvalArm, size_t, const StepAnswer& a) {
    const auto& chunks = a.record->chunks;
    for (size_t i = 0; i < chunks.size(); ++i) {
      ++cycles;
      incomplete += !is_traced(chunks[i], i + 1 == chunks.size());
    }
  });
  return hard("traces", incomplete > 0 || cycles == 0 ? GateState::unproven : GateState::passed,
              fmt::format("{} of {} cycles say their depth, what was accepted and emitted, and when",
                          cycles - incomplete, cycles));
}

EvalGate acceptance(const EvalEvidence& evidence) {
  AcceptanceCounts counts;
  for (const PackEvidence& e : evidence.packs)
    for (size_t i = 0; i < e.steps.size(); ++i)
      if (!e.loops[e.steps[i].request]) counts.add(*e.of(EvalArm::candidate)[i].record);
  const std::string alarm = acceptance_alarm(counts);
  if (!alarm.empty()) return hard("acceptance", GateState::failed, alarm);
  return hard("acceptance", counts.proposed > 0 ? GateState::passed : GateState::unproven,
              fmt::format("{} of {} proposals of the candidate were accepted", counts.accepted, counts.proposed));
}

EvalGate loops(const EvalManifest& manifest, const EvalEvidence& evidence) {
  std::string text;
  bool many = evidence.packs.empty();
  for (const PackEvidence& e : evidence.packs) {
    const auto n = static_cast<size_t>(std::count(e.loops.begin(), e.loops.end(), true));
    many =
        many || static_cast<double>(n) > manifest.contract.most_looping_answers * static_cast<double>(e.loops.size());
    text += fmt::format("{}{} of {} answers of pack {} repeat themselves", text.empty() ? "" : ", ", n, e.loops.size(),
                        e.pack.name);
  }
  return hard("answers", many ? GateState::unproven : GateState::passed, text + "; no speed counts them");
}

EvalGate attested(const EvalManifest& manifest, const EvalEvidence& evidence) {
  const bool drawn =
      std::all_of(evidence.packs.begin(), evidence.packs.end(), [](const PackEvidence& e) { return e.pack.drawn; });
  const std::string seeds =
      drawn ? "the seeds were drawn by the program when each pack was revealed" : "the seed was given by the operator";
  return hard("attested", manifest.attested ? GateState::passed : GateState::unproven,
              (manifest.attested ? "the operator states what no program can check; "
                                 : "the operator has not stated what no program can check (--attest); ") +
                  seeds);
}

}  // namespace

void judge_conduct(const EvalManifest& manifest, const EvalEvidence& evidence, std::vector<EvalGate>& gates) {
  gates.push_back(identity(manifest));
  gates.push_back(packs(manifest, evidence));
  gates.push_back(cold(evidence));
  gates.push_back(reuse(manifest));
  gates.push_back(request_ids(evidence));
  gates.push_back(ordered(manifest, evidence));
  gates.push_back(alternating(evidence));
  gates.push_back(traces(evidence));
  gates.push_back(acceptance(evidence));
  gates.push_back(loops(manifest, evidence));
  gates.push_back(attested(manifest, evidence));
}

}  // namespace stet
