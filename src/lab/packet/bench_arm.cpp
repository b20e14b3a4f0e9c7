#include "lab/packet/bench_arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/hash.h"
#include "lab/metrics/acceptance.h"
#include "lab/metrics/system.h"

namespace stet {
namespace {

std::string prompt_hash(const RequestRecord& r) { return sha256_hex(r.prompt.data(), r.prompt.size()); }

// Whether the same question has to get the same answer: greedy, or sampled with a seed.
bool is_determined(const RequestRecord& r) {
  if (r.sampling.empty()) return false;
  const Json sampling = parse_json(r.sampling, "the sampling parameters of a request");
  return sampling.contains("seed") || (sampling.contains("temperature") && sampling["temperature"] == 0);
}

void append(std::vector<std::string>& list, const std::string& id, const std::vector<std::string>& reasons) {
  for (const std::string& reason : reasons) list.push_back(fmt::format("request '{}': {}", id, reason));
}

}  // namespace

BenchArmJudge::BenchArmJudge(const BenchPlan& plan, const BenchArm& arm, const Packet& packet)
    : plan_(plan), arm_(arm), packet_(packet) {
  collect();
  judge_completeness();
  judge_repeats();
  judge_identity();
  judge_machine();
  judge_acceptance();
  std::vector<const RequestRecord*> records;
  for (const JudgedRequest& r : requests_) records.push_back(r.record);
  repeat_ = repeat_test(starts_, records);
  judge_repeatability();
  if (arm_.teacher) prove_by_repeat();
  fail_by_contradiction();
}

void BenchArmJudge::collect() {
  for (const StartRecord& s : packet_.starts)
    if (s.arm == arm_.name) starts_.push_back(s);
  const FigureRules rules{.cold = plan_.cold, .fixed_length = arm_.fixed_length, .speculative = arm_.speculative};
  std::set<std::string> not_watched;
  for (const RequestRecord& r : packet_.requests) {
    if (r.arm != arm_.name) continue;
    requests_.push_back({&r, request_figures(r, rules), std::nullopt, ""});
    const RequestFigures& f = requests_.back().figures;
    append(invalid_, r.id, f.invalid);
    append(unproven_, r.id, f.unproven);
    not_watched.insert(f.not_watched.begin(), f.not_watched.end());
  }
  not_watched_.assign(not_watched.begin(), not_watched.end());
}

// Every start answers every step, once and in the order of the plan: a prompt that is left out is a choice.
void BenchArmJudge::judge_completeness() {
  if (starts_.size() != arm_.starts)
    invalid_.push_back(fmt::format("incomplete: {} of {} starts", starts_.size(), arm_.starts));
  for (const StartRecord& s : starts_) {
    std::vector<std::string> seen;
    for (const JudgedRequest& r : requests_)
      if (r.record->start == s.start) seen.push_back(r.record->step_id);
    size_t i = 0;
    while (i < seen.size() && i < plan_.steps.size() && seen[i] == plan_.steps[i].id) ++i;
    if (i == seen.size() && i == plan_.steps.size()) continue;
    invalid_.push_back(fmt::format("incomplete: request {} of start {} is '{}' where the plan has '{}'", i, s.start,
                                   i < seen.size() ? seen[i] : "(none)",
                                   i < plan_.steps.size() ? plan_.steps[i].id : "(none)"));
  }
}

// A process that has seen a prompt answers it out of its cache. Starts that are not fresh are one process, as far as is
// known.
void BenchArmJudge::judge_repeats() {
  if (plan_.repeats_allowed) return;
  std::set<uint32_t> fresh;
  for (const StartRecord& s : starts_)
    if (s.fresh) fresh.insert(s.start);
  std::map<std::pair<int64_t, std::string>, std::string> first;
  for (JudgedRequest& r : requests_) {
    const int64_t process = fresh.contains(r.record->start) ? int64_t{r.record->start} : -1;
    const auto [it, is_new] = first.try_emplace({process, r.record->prompt}, r.record->id);
    if (is_new) continue;
    r.figures.invalid.push_back(fmt::format("repeated prompts: request '{}' sent the same", it->second));
    append(invalid_, r.record->id, {r.figures.invalid.back()});
  }
}

// The same question, whenever it is asked, gets the same answer.
void BenchArmJudge::judge_repeatability() {
  std::map<std::tuple<std::string, uint32_t, std::string>, const RequestRecord*> first;
  for (const JudgedRequest& judged : requests_) {
    const RequestRecord& r = *judged.record;
    if (!is_determined(r)) continue;
    const auto [it, is_new] = first.try_emplace({r.prompt, r.max_tokens, r.sampling}, &r);
    if (is_new) continue;
    const RequestRecord& other = *it->second;
    const auto x = other.token_ids(), y = r.token_ids();
    const auto difference = stet::first_difference(x, y, other.cancelled_by_client || r.cancelled_by_client);
    if (!difference) continue;
    invalid_.push_back(fmt::format("not repeatable: requests '{}' and '{}' ask the same and differ at {}", other.id,
                                   r.id, shown(*difference)));
    if (contradiction_.empty()) contradiction_ = invalid_.back();
  }
}

void BenchArmJudge::fail_by_contradiction() {
  if (contradiction_.empty()) return;
  status_ = "failed";
  reason_ = contradiction_;
  if (first_difference_.empty()) first_difference_ = contradiction_;
}

void BenchArmJudge::judge_identity() {
  for (size_t i = 0; i < starts_.size(); ++i) {
    const Json basis = identity_basis(starts_[i].identity_json);
    if (i == 0) identity_ = basis;
    if (const std::string difference = basis_difference(identity_, basis); !difference.empty())
      invalid_.push_back(
          fmt::format("identity: starts {} and {} differ: {}", starts_[0].start, starts_[i].start, difference));
    const Json identity = parse_json(starts_[i].identity_json, "the identity of a start");
    if (!identity.contains("build_id") || identity["build_id"] == "unproven")
      unproven_.push_back(fmt::format("identity: start {} does not say which program answered", starts_[i].start));
    if (!arm_.teacher) continue;
    if (!identity.contains("draft") || !identity["draft"].is_string())
      unproven_.push_back(fmt::format("identity: start {} does not say that it ran without a draft", starts_[i].start));
    else if (identity["draft"] != "none")
      invalid_.push_back(fmt::format("identity: start {} of the teacher ran with the draft '{}'", starts_[i].start,
                                     identity["draft"].get<std::string>()));
  }
}

// Stolen time of a whole start: many requests that each lost a little lost much.
void BenchArmJudge::judge_machine() {
  for (const StartRecord& s : starts_) {
    uint64_t ticks = 0, stolen = 0;
    for (const JudgedRequest& r : requests_) {
      const SystemSample &before = r.record->before, &after = r.record->after;
      if (r.record->start != s.start || !before.cpu_ticks || !after.cpu_ticks || !before.steal_ticks ||
          !after.steal_ticks)
        continue;
      ticks += *after.cpu_ticks - std::min(*before.cpu_ticks, *after.cpu_ticks);
      stolen += *after.steal_ticks - std::min(*before.steal_ticks, *after.steal_ticks);
    }
    if (const std::string fault = steal_fault(ticks, stolen); !fault.empty())
      invalid_.push_back(fmt::format("start {}: {}", s.start, fault));
  }
}

void BenchArmJudge::judge_acceptance() {
  if (!arm_.speculative) return;
  AcceptanceCounts counts;
  for (const JudgedRequest& r : requests_) counts.add(*r.record);
  if (const std::string alarm = acceptance_alarm(counts); !alarm.empty()) invalid_.push_back("all requests: " + alarm);
}

void BenchArmJudge::prove_by_repeat() {
  against_ = "its own fresh starts";
  compared_ = repeat_.steps;
  equal_ = repeat_.equal;
  first_difference_ = repeat_.first;
  if (repeat_.holds()) {
    status_ = "proved";
    reason_ = fmt::format("{} fresh starts gave the same ids for all {} steps", repeat_.starts, repeat_.steps);
    return;
  }
  status_ = repeat_.first.empty() ? "unproven" : "failed";
  if (!repeat_.first.empty())
    reason_ =
        fmt::format("{} of {} steps are equal in all starts; first: {}", repeat_.equal, repeat_.steps, repeat_.first);
  else if (repeat_.starts < 2)
    reason_ = fmt::format("{} start; the repeat test needs 2 fresh ones", repeat_.starts);
  else if (repeat_.fresh_starts != repeat_.starts)
    reason_ = fmt::format("{} of {} starts were fresh processes", repeat_.fresh_starts, repeat_.starts);
  else
    reason_ = fmt::format("steps without ids in some start: {}", fmt::join(repeat_.missing, ", "));
}

void BenchArmJudge::compare_request(JudgedRequest& request, const Teacher& teacher) {
  const RequestRecord& r = *request.record;
  const auto it = teacher.answers.find(r.step_id);
  if (it == teacher.answers.end()) {
    request.difference = "the teacher did not answer this step";
  } else if (it->second.prompt_sha256 != prompt_hash(r)) {
    request.difference = "the teacher was asked something else";
  } else if (!ids_known(r)) {
    request.difference = "the answer has no token ids";
  } else {
    const std::vector<int32_t> found = r.token_ids();
    const auto difference =
        stet::first_difference(it->second.token_ids, found, r.cancelled_by_client || it->second.cancelled);
    request.exact = !difference.has_value();
    if (difference) request.difference = shown(*difference);
  }
}

void BenchArmJudge::compare(const Teacher* teacher, const std::string& against) {
  if (teacher == nullptr) return;
  against_ = against;
  if (!teacher->problem.empty() && contradiction_.empty()) {
    reason_ = "the teacher proves nothing: " + teacher->problem;
    return;
  }
  const std::string basis = starts_.empty() ? "" : basis_difference(teacher->identity, identity_);
  first_difference_.clear();
  for (JudgedRequest& r : requests_) {
    compare_request(r, *teacher);
    compared_ += r.exact.has_value() ? 1 : 0;
    equal_ += r.exact.value_or(false) ? 1 : 0;
    if (r.exact == false && first_difference_.empty())
      first_difference_ = fmt::format("request '{}' (step '{}', start {}), {}", r.record->id, r.record->step_id,
                                      r.record->start, r.difference);
  }
  if (!basis.empty())
    reason_ = fmt::format("the teacher answered another question: {}", basis);
  else
    settle_comparison();
  if (status_ != "failed") fail_by_contradiction();
}

void BenchArmJudge::settle_comparison() {
  if (compared_ > equal_) {
    status_ = "failed";
    reason_ =
        fmt::format("{} of {} answers are the teacher's; first difference: {}", equal_, compared_, first_difference_);
    invalid_.push_back("exactness: " + reason_);
    return;
  }
  const auto open = std::find_if(requests_.begin(), requests_.end(), [](const JudgedRequest& r) { return !r.exact; });
  if (requests_.empty() || open != requests_.end()) {
    reason_ = requests_.empty() ? "there is no answer"
                                : fmt::format("{} of {} answers were compared; request '{}': {}", compared_,
                                              requests_.size(), open->record->id, open->difference);
    return;
  }
  status_ = "proved";
  reason_ = fmt::format("all {} answers are the teacher's, token by token", compared_);
}

std::string BenchArmJudge::verdict() const {
  if (!invalid_.empty() || status_ == "failed") return "invalid";
  return status_ != "proved" || !unproven_.empty() ? "unproven" : "valid";
}

bool BenchArmJudge::speeds_shown() const { return status_ == "proved" && invalid_.empty(); }

}  // namespace stet
