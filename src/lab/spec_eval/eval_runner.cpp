#include "lab/spec_eval/eval_runner.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "lab/metrics/system.h"
#include "lab/packet/teacher.h"

namespace stet {
namespace {

std::string hash_of_text(const std::string& text) { return sha256_hex(text.data(), text.size()); }

class EvalRunner {
 public:
  EvalRunner(const EvalRun& run, Ledger& ledger, Attempt& attempt) : run_(run), ledger_(ledger), attempt_(attempt) {}

  // Whatever ends it early, the user is told what it cost.
  EvalOutcome all_or_say_what_is_spent() {
    try {
      return all();
    } catch (const Error& e) {
      throw Error(e.code(), fmt::format("{}; {}", e.what(), spent()));
    }
  }

 private:
  EvalOutcome all() {
    check_files();
    for (const EvalArm arm : kEvalArms) {
      say(fmt::format("is the {} arm what was frozen?", eval_arm_name(arm)));
      check_identity(arm, *run_.open(arm));
    }
    writer_ = std::make_unique<PacketWriter>(run_.packet, run_.manifest_json);
    writer_->note("ledger", attempt_.context_json());
    seen_.plan_json = run_.manifest_json;
    seen_.notes.emplace_back("ledger", attempt_.context_json());
    for (size_t i = 0; i < run_.manifest.contract.packs.size(); ++i) {
      if (i > 0 && !run_.manifest.screening() && !judge_evaluation(run_.manifest, seen_).holds()) break;
      pack(i);
    }
    EvalOutcome outcome;
    outcome.results_json = writer_->finish();
    outcome.verdict = judge_evaluation(run_.manifest, seen_);
    outcome.packet_sha256 = manifest_sha256(run_.packet);
    return outcome;
  }

  void say(const std::string& line) const {
    if (run_.progress) run_.progress(line);
  }

  std::string spent() const {
    return revealed_.empty() ? "nothing was revealed, so nothing is spent"
                             : fmt::format("pack {} is spent: freeze what is there now as a new manifest", revealed_);
  }

  void check_files() const {
    const std::string changed = run_.changed ? run_.changed() : "";
    if (!changed.empty()) fail(Code::kUsage, "{} since the manifest was frozen", changed);
  }

  void check_identity(EvalArm which, const Arm& arm) const {
    const std::string change = identity_change(run_.manifest.arm(which).identity_json, arm.identity_json());
    if (!change.empty()) fail(Code::kUsage, "the {} arm is not what was frozen: {}", eval_arm_name(which), change);
  }

  // From here on the manifest is used up, whatever happens.
  RevealedPack reveal(const std::string& name) {
    RevealedPack pack;
    pack.name = name;
    pack.drawn = !run_.seed.has_value();
    pack.seed = run_.seed ? *run_.seed : draw_seed();
    ledger_.spend_pack(hash_of_text(std::to_string(pack.seed)), name, hash_of_text(run_.manifest_json), attempt_.id());
    attempt_.treatment();
    revealed_ += (revealed_.empty() ? "" : " and ") + name;
    say(fmt::format("making the prompts of pack {}", name));
    pack.requests = generate_pack(run_.manifest.contract, pack.seed, name, run_.manifest.scale, run_.count);
    const std::string note = pack_note(pack);
    writer_->note(kPackNote, note);
    seen_.notes.emplace_back(kPackNote, note);
    return pack;
  }

  void pack(size_t index) {
    check_files();
    const RevealedPack pack = reveal(run_.manifest.contract.packs[index]);
    const std::vector<EvalStep> steps = eval_steps(run_.manifest.contract, pack.requests);
    for (const EvalArm which : launch_order(index)) {
      const std::unique_ptr<Arm> arm = run_.open(which);
      check_identity(which, *arm);
      const StartRecord start{std::string(eval_arm_name(which)), static_cast<uint32_t>(index), arm->fresh(),
                              arm->identity_json(), monotonic_ns()};
      writer_->add(start);
      seen_.starts.push_back(start);
      for (size_t i = 0; i < steps.size(); ++i) {
        say(fmt::format("pack {}, {} arm: request {} of {}", pack.name, eval_arm_name(which), i + 1, steps.size()));
        ask(*arm, start, steps[i], pack.requests[steps[i].request], static_cast<uint32_t>(i));
      }
    }
  }

  void ask(Arm& arm, const StartRecord& start, const EvalStep& step, const PackRequest& request, uint32_t index) {
    if (run_.stop && run_.stop()) fail(Code::kCancelled, "interrupted");
    const std::string id = draw_request_id();
    RequestRecord r = arm.ask(planned_step(step, request, id));
    // Only now does anybody say which request it was.
    r.id = id;
    r.arm = start.arm;
    r.start = start.start;
    r.index = index;
    r.step_id = step.id;
    r.step_class = class_of(request);
    writer_->add(r);
    seen_.requests.push_back(std::move(r));
  }

  const EvalRun& run_;
  Ledger& ledger_;
  Attempt& attempt_;
  std::unique_ptr<PacketWriter> writer_;
  std::string revealed_;
  Packet seen_;
};

}  // namespace

EvalOutcome run_evaluation(const EvalRun& run, Ledger& ledger, Attempt& attempt) {
  STET_CHECK(run.open && run.count);
  return EvalRunner(run, ledger, attempt).all_or_say_what_is_spent();
}

Outcome ledger_outcome(const EvalManifest& manifest, const EvalOutcome& outcome) {
  const EvalVerdict& v = outcome.verdict;
  const std::vector<std::string> open = v.of_state(GateState::unproven);
  const bool is_void = v.verdict == "void", promoted = v.verdict == "promoted";
  Outcome o;
  o.verdict = v.verdict;
  o.packet_sha256 = outcome.packet_sha256;
  o.reason = !v.reasons.empty() ? v.reasons[0] : !open.empty() ? "unproven: " + open[0] : "";
  o.status.correctness = v.diverged         ? Correctness::inexact
                         : !v.packs.empty() ? Correctness::exact
                                            : Correctness::unproven;
  o.status.infrastructure = Infrastructure::sound;
  o.status.measurement = is_void                ? Measurement::invalid
                         : manifest.screening() ? Measurement::screening
                         : open.empty()         ? Measurement::valid
                                                : Measurement::unproven;
  o.status.endpoint = is_void || v.packs.empty() ? EndpointStatus::none
                      : promoted                 ? EndpointStatus::pass
                      : manifest.screening()     ? EndpointStatus::measured
                                                 : EndpointStatus::below_gate;
  o.status.lifecycle = promoted ? Lifecycle::promoted : Lifecycle::finished;
  return o;
}

}  // namespace stet
