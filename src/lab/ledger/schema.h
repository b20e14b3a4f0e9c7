// The tables of the ledger.
#pragma once

namespace stet {

inline constexpr int kLedgerVersion = 1;
inline constexpr int kLedgerApplication =
    0x73746574;  // "stet": PRAGMA application_id, so that no other database is taken for a ledger

inline constexpr const char* kLedgerSchema = R"sql(
CREATE TABLE attempts(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL, label TEXT NOT NULL, idea TEXT NOT NULL, cites TEXT NOT NULL,
  subject_sha256 TEXT NOT NULL, plan_sha256 TEXT NOT NULL, authority TEXT NOT NULL,
  packet TEXT NOT NULL, mark TEXT NOT NULL,
  begun TEXT NOT NULL, treated TEXT, ended TEXT,
  outcome TEXT NOT NULL DEFAULT '', verdict TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '',
  packet_sha256 TEXT NOT NULL DEFAULT '',
  correctness TEXT NOT NULL, component TEXT NOT NULL, endpoint TEXT NOT NULL,
  infrastructure TEXT NOT NULL, measurement TEXT NOT NULL, lifecycle TEXT NOT NULL);
CREATE INDEX attempts_by_plan ON attempts(plan_sha256);
CREATE INDEX attempts_by_subject ON attempts(subject_sha256);
CREATE TABLE journal(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, text TEXT NOT NULL, condition TEXT NOT NULL DEFAULT '');
CREATE TABLE packs(
  seed_sha256 TEXT NOT NULL, pack TEXT NOT NULL, manifest_sha256 TEXT NOT NULL, attempt INTEGER NOT NULL, at TEXT NOT NULL,
  PRIMARY KEY(seed_sha256, pack));
CREATE TRIGGER attempts_stay BEFORE DELETE ON attempts BEGIN SELECT RAISE(ABORT, 'the ledger deletes nothing'); END;
CREATE TRIGGER attempts_end_once BEFORE UPDATE ON attempts WHEN OLD.ended IS NOT NULL
  BEGIN SELECT RAISE(ABORT, 'this attempt has ended'); END;
CREATE TRIGGER attempts_keep_their_plan BEFORE UPDATE OF kind, idea, cites, subject_sha256, plan_sha256, authority, begun ON attempts
  BEGIN SELECT RAISE(ABORT, 'a plan is frozen'); END;
CREATE TRIGGER attempts_stay_treated BEFORE UPDATE OF treated ON attempts WHEN OLD.treated IS NOT NULL
  BEGIN SELECT RAISE(ABORT, 'the treatment was reached already'); END;
CREATE TRIGGER journal_stays BEFORE DELETE ON journal BEGIN SELECT RAISE(ABORT, 'the ledger deletes nothing'); END;
CREATE TRIGGER journal_is_frozen BEFORE UPDATE ON journal BEGIN SELECT RAISE(ABORT, 'the journal is append only'); END;
CREATE TRIGGER packs_stay BEFORE DELETE ON packs BEGIN SELECT RAISE(ABORT, 'the ledger deletes nothing'); END;
CREATE TRIGGER packs_are_frozen BEFORE UPDATE ON packs BEGIN SELECT RAISE(ABORT, 'a spent pack stays spent'); END;
)sql";

}  // namespace stet
