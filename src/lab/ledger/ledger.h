// The ledger: every attempt at a measurement, what became of it, and which ideas are closed. One SQLite file, shared by
// all processes of a user; nothing in it is ever deleted (the schema refuses it).
//
//   attempts   one row each, registered before anything starts; a process that dies leaves a row that says so
//   journal    closures of classes of ideas, active lane, protected work, next action: append only
//   packs      prompt packs whose seed has been revealed (spec-eval): each may be used once
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lab/ledger/status.h"

namespace stet {

// one_shot: a plan may be attempted once, whatever comes of it. until_treatment: attempts that never reached the
// treatment cost nothing; the first that does is final.
enum class Authority : uint8_t { one_shot, until_treatment };
std::string_view authority_name(Authority authority);
Authority parse_authority(std::string_view name);  // throws Error(kUsage)

struct AttemptPlan {
  std::string kind;            // "bench", "compare", "spec-eval"
  std::string label;           // for people
  std::string idea;            // the class of ideas that it belongs to; empty: none
  std::vector<int64_t> cites;  // journal ids of closures that it knows of
  std::string subject_sha256;  // of what is measured, without seed and date: attempts at the same thing have the same
  std::string plan_sha256;
  Authority authority = Authority::until_treatment;
  std::string packet;  // the path of the packet that it writes
};

struct Outcome {
  std::string verdict;        // "promoted", "not promoted", "void", "exact", ...
  std::string reason;         // one line
  std::string packet_sha256;  // of its MANIFEST
  Status status;
};

struct AttemptRow {
  int64_t id = 0;
  AttemptPlan plan;
  std::string begun, treated, ended;  // UTC, "2026-11-30T01:02:03Z"; empty: not (yet)
  std::string outcome;                // "", "finished", "failed", "aborted", "refused"
  std::string verdict, reason, packet_sha256;
  std::string correctness, component, endpoint, infrastructure, measurement, lifecycle;
  bool live = false;  // its process holds its mark
};

struct JournalRow {
  int64_t id = 0;
  std::string at, kind, subject, text, condition;
};

struct ClassState {
  std::string name;
  bool closed = false;
  int64_t closure = 0;  // journal id
  std::string why, reopen_only_if, at;
};

// What became of a row that was sent to a board. Without an end, nobody knows.
enum class SubmissionEnd : uint8_t { taken, refused, not_sent };

class Ledger;

// A registered attempt. If neither finish() nor fail() was called, its destructor records a failure by an unknown
// cause; a process that dies is found out by the next one that opens the ledger.
class Attempt {
 public:
  Attempt(Attempt&&) noexcept;
  Attempt& operator=(Attempt&&) = delete;
  ~Attempt();

  int64_t id() const;
  // What preceded it, for the packet: {"attempt": id, "before": {"all": n, "same_subject": n, "same_plan": n,
  // "same_idea": n}, "earlier": [{"attempt", "outcome", "verdict", "reached_treatment"} of the same subject, the last
  // 20], "idea", "cites", "authority"}.
  std::string context_json() const;
  // The treatment is reached: from now on the attempt counts, whatever happens.
  void treatment();
  void finish(const Outcome& outcome);
  // why: one line. aborted: the user stopped it.
  void fail(std::string_view why, bool aborted = false);

 private:
  friend class Ledger;
  struct Impl;
  explicit Attempt(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class Ledger {
 public:
  // $XDG_DATA_HOME/stet/ledger.sqlite. Throws Error(kResource) where no such folder is known.
  static std::string default_path();

  // Opens or creates it (folders with mode 0700). Throws Error(kUnsupported) when a newer stet wrote it.
  explicit Ledger(const std::string& path);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;
  const std::string& path() const;

  // Registers an attempt. Throws Error(kUsage), after recording the refusal, when the plan's authority is used up, when
  // another attempt at the same plan is running, or when its class of ideas is closed by a closure that it does not
  // cite.
  Attempt begin(const AttemptPlan& plan);

  std::vector<AttemptRow> attempts();  // oldest first
  AttemptRow attempt(int64_t id);      // throws Error(kUsage) when there is none
  std::vector<JournalRow> journal();
  std::vector<ClassState> classes();  // by name; those that were ever closed

  // Both return the journal id. Throw Error(kUsage): closing what is closed, reopening what is open, no reason, no
  // condition.
  int64_t close_class(const std::string& name, const std::string& why, const std::string& reopen_only_if);
  int64_t reopen_class(const std::string& name, const std::string& why);
  // kind: "lane", "next", "protect", "release", "note".
  int64_t write_journal(const std::string& kind, const std::string& subject, const std::string& text);

  // A row is about to be sent to a board. subject: what identifies it. Throws Error(kUsage) when it was taken before,
  // or when an earlier sending has no end: a row is never sent twice.
  void begin_submission(const std::string& subject, const std::string& text);
  void end_submission(const std::string& subject, SubmissionEnd end, const std::string& text);

  // A pack's prompts are about to be seen by this manifest's candidate. Throws Error(kUsage) when its seed was revealed
  // before: to another manifest (a changed candidate needs new packs), or to this one (a pack is run once).
  void spend_pack(const std::string& seed_sha256, const std::string& pack, const std::string& manifest_sha256,
                  int64_t attempt);

 private:
  friend class Attempt;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace stet
