#include "lab/spec_eval/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lab/metrics/repetition.h"
#include "lab/metrics/system.h"

namespace stet {
namespace {

constexpr std::string_view kLoop = "repetition loop", kFlat = "flat acceptance";

const StartRecord* find_start(const Packet& packet, EvalArm arm, size_t pack) {
  for (const StartRecord& s : packet.starts)
    if (s.arm == eval_arm_name(arm) && s.start == pack) return &s;
  return nullptr;
}

class Collector {
 public:
  Collector(const EvalManifest& manifest, const Packet& packet) : manifest_(manifest), packet_(packet) {}

  EvalEvidence all() {
    const std::vector<RevealedPack> packs = revealed_packs(packet_);
    const auto& names = manifest_.contract.packs;
    for (size_t i = 0; i < packs.size(); ++i) {
      if (i >= names.size() || packs[i].name != names[i])
        fault(fmt::format("pack {} was revealed where the contract has {}", packs[i].name,
                          i < names.size() ? names[i] : "none"));
      else
        take(packs[i], i);
    }
    if (packs.empty()) fault("no pack was revealed");
    if (packet_.starts.size() != kEvalArms.size() * packs.size())
      fault(fmt::format("{} starts of {} packs", packet_.starts.size(), packs.size()));
    add_invalid();
    return std::move(evidence_);
  }

 private:
  void fault(std::string what) { evidence_.faults.push_back(std::move(what)); }

  void take(const RevealedPack& pack, size_t index) {
    PackEvidence e;
    e.pack = pack;
    e.steps = eval_steps(manifest_.contract, pack.requests);
    for (const EvalArm arm : launch_order(index)) check_start(arm, index);
    bool complete = true;
    for (const EvalArm arm : kEvalArms) complete = take_answers(arm, index, e) && complete;
    if (!complete) return;
    e.loops.assign(pack.requests.size(), false);
    for (size_t i = 0; i < e.steps.size(); ++i)
      if (e.steps[i].kind == StepKind::timed && repetition_loop(e.of(EvalArm::target)[i].ids))
        e.loops[e.steps[i].request] = true;
    evidence_.packs.push_back(std::move(e));
  }

  void check_start(EvalArm arm, size_t index) {
    const StartRecord* start = find_start(packet_, arm, index);
    if (start == nullptr) return fault(fmt::format("the {} arm has no start {}", eval_arm_name(arm), index));
    if (!start->fresh) fault(fmt::format("start {} of the {} arm was no fresh process", index, eval_arm_name(arm)));
    if (start->client_ns < last_start_ns_)
      fault(fmt::format("start {} of the {} arm ran out of order", index, eval_arm_name(arm)));
    last_start_ns_ = start->client_ns;
    const std::string change = identity_change(manifest_.arm(arm).identity_json, start->identity_json);
    if (!change.empty())
      fault(fmt::format("start {} of the {} arm is not what was frozen: {}", index, eval_arm_name(arm), change));
  }

  bool take_answers(EvalArm arm, size_t index, PackEvidence& e) {
    std::vector<StepAnswer>& answers = e.answers[static_cast<size_t>(arm)];
    const FigureRules rules{
        .cold = true, .fixed_length = false, .speculative = arm != EvalArm::target && speculates(arm)};
    for (const RequestRecord& r : packet_.requests) {
      if (r.arm != eval_arm_name(arm) || r.start != index) continue;
      const size_t n = answers.size();
      if (n >= e.steps.size() || r.step_id != e.steps[n].id || !was_asked(r, e, e.steps[n])) {
        fault(fmt::format("request {} of start {} of the {} arm is not step '{}' of the pack", n, index,
                          eval_arm_name(arm), n < e.steps.size() ? e.steps[n].id : "(none)"));
        return false;
      }
      answers.push_back({&r, request_figures(r, rules), r.token_ids()});
      count_invalid(r, answers.back().figures);
    }
    if (answers.size() == e.steps.size()) return true;
    fault(fmt::format("the {} arm answered {} of {} steps of pack {}", eval_arm_name(arm), answers.size(),
                      e.steps.size(), e.pack.name));
    return false;
  }

  bool speculates(EvalArm arm) const {
    return manifest_.arm(arm).identity_json.find(R"("draft":"none")") == std::string::npos;
  }

  // The prompt, limit and sampling of the step, and nothing that was cut or repeated.
  static bool was_asked(const RequestRecord& r, const PackEvidence& e, const EvalStep& step) {
    const PackRequest& request = e.pack.requests[step.request];
    const PlannedRequest planned = planned_step(step, request, r.id);
    return !request.prompt.empty() && r.prompt == messages_json(planned.messages) &&
           r.max_tokens == planned.max_tokens && r.sampling == sampling_json(planned);
  }

  void count_invalid(const RequestRecord& r, const RequestFigures& figures) {
    const auto is_loop = [](const std::string& reason) { return reason.starts_with(kLoop); };
    const bool loops = std::any_of(figures.invalid.begin(), figures.invalid.end(), is_loop);
    for (const std::string& reason : figures.invalid) {
      // An answer that repeats itself has no speed; that its proposals all stand is no wonder.
      if (is_loop(reason) || (loops && reason.starts_with(kFlat))) continue;
      ++invalid_[reason];
      first_.emplace(reason, fmt::format("{}, step '{}'", r.arm, r.step_id));
    }
  }

  void add_invalid() {
    for (const auto& [reason, n] : invalid_)
      fault(n == 1 ? fmt::format("{} ({})", reason, first_.at(reason))
                   : fmt::format("{} ({} and {} more)", reason, first_.at(reason), n - 1));
  }

  const EvalManifest& manifest_;
  const Packet& packet_;
  EvalEvidence evidence_;
  int64_t last_start_ns_ = 0;
  std::map<std::string, uint32_t> invalid_;
  std::map<std::string, std::string> first_;
};

}  // namespace

std::array<EvalArm, 3> launch_order(size_t pack) {
  std::array<EvalArm, 3> order = kEvalArms;
  if (pack % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

EvalEvidence collect_evidence(const EvalManifest& manifest, const Packet& packet) {
  return Collector(manifest, packet).all();
}

}  // namespace stet
