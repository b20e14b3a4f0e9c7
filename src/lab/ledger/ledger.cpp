#include "lab/ledger/ledger.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/xdg.h"
#include "lab/ledger/ledger_impl.h"
#include "lab/ledger/schema.h"

namespace stet {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kColumns =
    "id, kind, label, idea, cites, subject_sha256, plan_sha256, authority, packet, mark, begun, treated, ended, "
    "outcome, "
    "verdict, reason, packet_sha256, correctness, component, endpoint, infrastructure, measurement, lifecycle";

std::string prepared_folder(const std::string& path) {
  const fs::path folder = fs::absolute(path).parent_path();
  std::error_code error;
  if (fs::exists(folder, error)) return path;
  fs::create_directories(folder, error);
  if (error) fail(Code::kResource, "the folder {} of the ledger cannot be made: {}", folder.string(), error.message());
  fs::permissions(folder, fs::perms::owner_all, error);
  return path;
}

AttemptRow row_of(const Statement& s) {
  AttemptRow row;
  row.id = s.integer(0);
  row.plan.kind = s.text(1);
  row.plan.label = s.text(2);
  row.plan.idea = s.text(3);
  for (const auto& id : nlohmann::json::parse(s.text(4))) row.plan.cites.push_back(id.get<int64_t>());
  row.plan.subject_sha256 = s.text(5);
  row.plan.plan_sha256 = s.text(6);
  row.plan.authority = parse_authority(s.text(7));
  row.plan.packet = s.text(8);
  row.begun = s.text(10);
  row.treated = s.text(11);
  row.ended = s.text(12);
  row.outcome = s.text(13);
  row.verdict = s.text(14);
  row.reason = s.text(15);
  row.packet_sha256 = s.text(16);
  row.correctness = s.text(17);
  row.component = s.text(18);
  row.endpoint = s.text(19);
  row.infrastructure = s.text(20);
  row.measurement = s.text(21);
  row.lifecycle = s.text(22);
  row.live = row.ended.empty();  // reconcile() has ended those whose process died
  return row;
}

void check_version(Database& database, const std::string& path) {
  Statement version(database, "PRAGMA user_version"), application(database, "PRAGMA application_id");
  version.step();
  application.step();
  if (version.integer(0) > kLedgerVersion)
    fail(Code::kUnsupported, "the ledger {} has version {}, and this stet knows {}: use the stet that wrote it", path,
         version.integer(0), kLedgerVersion);
  if (application.integer(0) != kLedgerApplication) fail(Code::kInput, "{} is a database, but no ledger of stet", path);
}

void prepare(Database& database, const std::string& path) {
  database.run("PRAGMA journal_mode = WAL");
  database.run("PRAGMA synchronous = FULL");
  WriteTransaction transaction(database);
  Statement tables(database, "SELECT count(*) FROM sqlite_master");
  tables.step();
  if (tables.integer(0) > 0) return check_version(database, path);
  database.run(kLedgerSchema);
  database.run(fmt::format("PRAGMA user_version = {}", kLedgerVersion));
  database.run(fmt::format("PRAGMA application_id = {}", kLedgerApplication));
  transaction.commit();
}

}  // namespace

std::string_view authority_name(Authority authority) {
  return authority == Authority::one_shot ? "one-shot" : "until-treatment";
}

Authority parse_authority(std::string_view name) {
  for (Authority a : {Authority::one_shot, Authority::until_treatment})
    if (name == authority_name(a)) return a;
  fail(Code::kUsage, "there is no authority '{}'; choose one-shot or until-treatment", name);
}

std::string Ledger::default_path() {
  const std::string data = user_paths().data;
  if (data.empty())
    fail(Code::kResource,
         "no folder for the ledger is known: neither XDG_DATA_HOME nor HOME is an absolute path; set one, or use "
         "--ledger FILE");
  return data + "/stet/ledger.sqlite";
}

Ledger::Ledger(const std::string& path) : impl_(std::make_shared<Impl>(prepared_folder(path))) {
  prepare(impl_->database, path);
}

Ledger::~Ledger() = default;

const std::string& Ledger::path() const { return impl_->path; }

void Ledger::Impl::reconcile() {
  std::set<std::string> alive;
  for (const RunningProcess& p : running_processes(running_folder(path))) alive.insert(p.name);
  std::vector<std::pair<int64_t, bool>> dead;
  Statement open(database, "SELECT id, mark, treated FROM attempts WHERE ended IS NULL");
  while (open.step())
    if (alive.count(open.text(1)) == 0) dead.emplace_back(open.integer(0), !open.null(2));
  for (const auto& [id, treated] : dead) {
    Statement end(
        database,
        "UPDATE attempts SET ended = ?, outcome = 'aborted', reason = 'its process ended without a word', "
        "infrastructure = ?, lifecycle = 'terminal' WHERE id = ?",
        utc_now(),
        status_name(treated ? Infrastructure::aborted_after_treatment : Infrastructure::aborted_before_treatment), id);
    end.step();
  }
}

std::vector<AttemptRow> Ledger::attempts() {
  WriteTransaction transaction(impl_->database);
  impl_->reconcile();
  std::vector<AttemptRow> rows;
  Statement s(impl_->database, fmt::format("SELECT {} FROM attempts ORDER BY id", kColumns));
  while (s.step()) rows.push_back(row_of(s));
  transaction.commit();
  return rows;
}

AttemptRow Ledger::attempt(int64_t id) {
  WriteTransaction transaction(impl_->database);
  impl_->reconcile();
  transaction.commit();
  Statement s(impl_->database, fmt::format("SELECT {} FROM attempts WHERE id = ?", kColumns), id);
  if (!s.step()) fail(Code::kUsage, "the ledger {} has no attempt {}; `stet ledger list` shows them", path(), id);
  return row_of(s);
}

std::vector<JournalRow> Ledger::journal() {
  std::vector<JournalRow> rows;
  Statement s(impl_->database, "SELECT id, at, kind, subject, text, condition FROM journal ORDER BY id");
  while (s.step()) rows.push_back({s.integer(0), s.text(1), s.text(2), s.text(3), s.text(4), s.text(5)});
  return rows;
}

ClassState Ledger::Impl::class_state(const std::string& name) {
  ClassState state{.name = name, .closed = false, .closure = 0, .why = "", .reopen_only_if = "", .at = ""};
  Statement s(database,
              "SELECT id, kind, text, condition, at FROM journal WHERE subject = ? AND kind IN ('close', 'reopen') "
              "ORDER BY id DESC LIMIT 1",
              name);
  if (!s.step()) return state;
  state.closed = s.text(1) == "close";
  state.closure = s.integer(0);
  state.why = s.text(2);
  state.reopen_only_if = s.text(3);
  state.at = s.text(4);
  return state;
}

std::vector<ClassState> Ledger::classes() {
  std::vector<ClassState> states;
  Statement s(impl_->database, "SELECT DISTINCT subject FROM journal WHERE kind = 'close' ORDER BY subject");
  while (s.step()) states.push_back(impl_->class_state(s.text(0)));
  return states;
}

namespace {

int64_t append(Database& database, const std::string& kind, const std::string& subject, const std::string& text,
               const std::string& condition) {
  Statement s(database, "INSERT INTO journal(at, kind, subject, text, condition) VALUES(?, ?, ?, ?, ?)", utc_now(),
              kind, subject, text, condition);
  s.step();
  return database.last_id();
}

}  // namespace

int64_t Ledger::close_class(const std::string& name, const std::string& why, const std::string& reopen_only_if) {
  if (name.empty() || why.empty() || reopen_only_if.empty())
    fail(Code::kUsage, "closing a class of ideas needs its name, --why and --reopen-only-if");
  WriteTransaction transaction(impl_->database);
  const ClassState state = impl_->class_state(name);
  if (state.closed) fail(Code::kUsage, "the class '{}' is closed already, since {} ({})", name, state.at, state.why);
  const int64_t id = append(impl_->database, "close", name, why, reopen_only_if);
  transaction.commit();
  return id;
}

int64_t Ledger::reopen_class(const std::string& name, const std::string& why) {
  if (why.empty()) fail(Code::kUsage, "reopening a class of ideas needs --why: how its condition is met");
  WriteTransaction transaction(impl_->database);
  if (!impl_->class_state(name).closed) fail(Code::kUsage, "the class '{}' is not closed", name);
  const int64_t id = append(impl_->database, "reopen", name, why, "");
  transaction.commit();
  return id;
}

int64_t Ledger::write_journal(const std::string& kind, const std::string& subject, const std::string& text) {
  static const std::set<std::string> kEntryKinds = {"lane", "next", "protect", "release", "note"};
  if (kEntryKinds.count(kind) == 0) fail(Code::kInternal, "the journal has no entries of the kind '{}'", kind);
  WriteTransaction transaction(impl_->database);
  const int64_t id = append(impl_->database, kind, subject, text, "");
  transaction.commit();
  return id;
}

void Ledger::spend_pack(const std::string& seed_sha256, const std::string& pack, const std::string& manifest_sha256,
                        int64_t attempt) {
  WriteTransaction transaction(impl_->database);
  Statement spent(impl_->database, "SELECT pack, manifest_sha256, attempt, at FROM packs WHERE seed_sha256 = ?",
                  seed_sha256);
  while (spent.step()) {
    if (spent.text(1) != manifest_sha256)
      fail(Code::kUsage,
           "this seed was revealed on {} to another manifest ({}..., attempt {}): a changed candidate needs a new seed",
           spent.text(3), spent.text(1).substr(0, 12), spent.integer(2));
    if (spent.text(0) == pack)
      fail(Code::kUsage, "pack {} of this seed was run on {} (attempt {}): a pack is run once; draw a new seed", pack,
           spent.text(3), spent.integer(2));
  }
  Statement spend(impl_->database, "INSERT INTO packs VALUES(?, ?, ?, ?, ?)", seed_sha256, pack, manifest_sha256,
                  attempt, utc_now());
  spend.step();
  transaction.commit();
}

}  // namespace stet
