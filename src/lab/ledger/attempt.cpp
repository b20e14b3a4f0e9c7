// Attempts: what may begin, and how each ends.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "lab/ledger/ledger_impl.h"

namespace stet {
namespace {

using SortedJson = nlohmann::json;

constexpr int kEarlierShown = 20;

std::string_view before_or_after(bool treated, bool aborted) {
  if (aborted)
    return status_name(treated ? Infrastructure::aborted_after_treatment : Infrastructure::aborted_before_treatment);
  return status_name(treated ? Infrastructure::failed_after_treatment : Infrastructure::failed_before_treatment);
}

int64_t insert(Database& database, const AttemptPlan& plan, const std::string& mark, const std::string& refused) {
  const bool refusal = !refused.empty();
  const std::optional<std::string> ended = refusal ? std::optional(utc_now()) : std::nullopt;
  Statement s(
      database,
      "INSERT INTO attempts(kind, label, idea, cites, subject_sha256, plan_sha256, authority, packet, mark, begun, "
      "ended, outcome, reason, correctness, component, endpoint, infrastructure, measurement, lifecycle) "
      "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'unknown', 'none', 'none', 'unknown', 'none', ?)",
      plan.kind, plan.label, plan.idea, SortedJson(plan.cites).dump(), plan.subject_sha256, plan.plan_sha256,
      authority_name(plan.authority), plan.packet, mark, utc_now(), ended, refusal ? "refused" : "", refused,
      refusal ? "refused" : "registered");
  s.step();
  return database.last_id();
}

}  // namespace

int64_t Ledger::Impl::count(std::string_view column, const std::string& value) {
  Statement s(database, fmt::format("SELECT count(*) FROM attempts WHERE outcome <> 'refused' AND {} = ?", column),
              value);
  s.step();
  return s.integer(0);
}

int64_t Ledger::Impl::count_all() {
  Statement s(database, "SELECT count(*) FROM attempts WHERE outcome <> 'refused'");
  s.step();
  return s.integer(0);
}

std::string Ledger::Impl::objection(const AttemptPlan& plan) {
  Statement earlier(
      database,
      "SELECT id, begun, treated, ended, outcome FROM attempts WHERE plan_sha256 = ? AND outcome <> 'refused' "
      "ORDER BY id",
      plan.plan_sha256);
  while (earlier.step()) {
    if (earlier.null(3)) return fmt::format("attempt {} at this plan is running", earlier.integer(0));
    if (plan.authority == Authority::one_shot)
      return fmt::format("the authority of this plan is one-shot, and attempt {} used it on {} ({})",
                         earlier.integer(0), earlier.text(1), earlier.text(4));
    if (!earlier.null(2))
      return fmt::format(
          "the authority of this plan lasts until the treatment, and attempt {} reached it on {} ({}): what it found "
          "stands",
          earlier.integer(0), earlier.text(2), earlier.text(4));
  }
  if (plan.idea.empty()) return "";
  const ClassState state = class_state(plan.idea);
  if (!state.closed) return "";
  for (int64_t cited : plan.cites)
    if (cited == state.closure) return "";
  return fmt::format(
      "the class '{}' was closed on {} by entry {} ({}); reopen only if: {}. A new plan cites it: --cite {}", plan.idea,
      state.at, state.closure, state.why, state.reopen_only_if, state.closure);
}

std::string Ledger::Impl::context(const AttemptPlan& plan, int64_t id) {
  SortedJson earlier = SortedJson::array();
  Statement s(database,
              "SELECT id, outcome, verdict, treated FROM attempts WHERE subject_sha256 = ? AND outcome <> 'refused' "
              "ORDER BY id DESC LIMIT ?",
              plan.subject_sha256, int64_t{kEarlierShown});
  while (s.step())
    earlier.push_back(
        {{"attempt", s.integer(0)}, {"outcome", s.text(1)}, {"verdict", s.text(2)}, {"reached_treatment", !s.null(3)}});
  const SortedJson all = {{"attempt", id},
                          {"before",
                           {{"all", count_all()},
                            {"same_subject", count("subject_sha256", plan.subject_sha256)},
                            {"same_plan", count("plan_sha256", plan.plan_sha256)},
                            {"same_idea", plan.idea.empty() ? 0 : count("idea", plan.idea)}}},
                          {"earlier", earlier},
                          {"idea", plan.idea},
                          {"cites", plan.cites},
                          {"authority", authority_name(plan.authority)}};
  return all.dump(-1, ' ', false, SortedJson::error_handler_t::replace);
}

Attempt Ledger::begin(const AttemptPlan& plan) {
  STET_CHECK(!plan.kind.empty() && plan.plan_sha256.size() == 64 && plan.subject_sha256.size() == 64);
  // The mark comes first: a row without a mark is a process that died.
  auto mark = std::make_unique<RunningMark>(running_folder(impl_->path), plan.kind,
                                            SortedJson({{"packet", plan.packet}, {"label", plan.label}})
                                                .dump(-1, ' ', false, SortedJson::error_handler_t::replace));
  auto attempt = std::make_unique<Attempt::Impl>();
  attempt->ledger = impl_;
  WriteTransaction transaction(impl_->database);
  impl_->reconcile();
  const std::string objection = impl_->objection(plan);
  const std::string context = impl_->context(plan, 0);
  attempt->id = insert(impl_->database, plan, mark->name(), objection);
  transaction.commit();
  if (!objection.empty()) fail(Code::kUsage, "{}", objection);
  SortedJson known = SortedJson::parse(context);
  known["attempt"] = attempt->id;
  attempt->context_json = known.dump();
  attempt->mark = std::move(mark);
  return Attempt(std::move(attempt));
}

Attempt::Attempt(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Attempt::Attempt(Attempt&&) noexcept = default;

Attempt::~Attempt() {
  if (!impl_ || impl_->ended) return;
  try {
    fail("it ended early");
  } catch (const std::exception&) {
    // Its mark is released all the same, so that the next process that looks records it as aborted.
  }
}

int64_t Attempt::id() const { return impl_->id; }
std::string Attempt::context_json() const { return impl_->context_json; }

void Attempt::treatment() {
  if (impl_->treated) return;
  WriteTransaction transaction(impl_->ledger->database);
  Statement s(impl_->ledger->database, "UPDATE attempts SET treated = ?, lifecycle = 'treated' WHERE id = ?", utc_now(),
              impl_->id);
  s.step();
  transaction.commit();
  impl_->treated = true;
}

void Attempt::Impl::end(std::string_view outcome, const Outcome& what) {
  STET_CHECK(!ended);
  WriteTransaction transaction(ledger->database);
  const Status& st = what.status;
  const std::string_view infrastructure =
      outcome == "finished" ? status_name(st.infrastructure) : before_or_after(treated, outcome == "aborted");
  const std::string_view lifecycle =
      outcome == "finished" ? status_name(st.lifecycle) : status_name(Lifecycle::terminal);
  Statement s(
      ledger->database,
      "UPDATE attempts SET ended = ?, outcome = ?, verdict = ?, reason = ?, packet_sha256 = ?, correctness = ?, "
      "component = ?, endpoint = ?, infrastructure = ?, measurement = ?, lifecycle = ? WHERE id = ?",
      utc_now(), outcome, what.verdict, what.reason, what.packet_sha256, status_name(st.correctness),
      status_name(st.component), status_name(st.endpoint), infrastructure, status_name(st.measurement), lifecycle, id);
  s.step();
  transaction.commit();
  ended = true;
  mark.reset();
}

void Attempt::finish(const Outcome& outcome) { impl_->end("finished", outcome); }

void Attempt::fail(std::string_view why, bool aborted) {
  Outcome outcome;
  outcome.reason = why;
  impl_->end(aborted ? "aborted" : "failed", outcome);
}

}  // namespace stet
