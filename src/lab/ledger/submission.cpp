// Rows that were sent to a board: entries "submit" of the journal, whose condition is "begun" or how it ended.
#include "base/error.h"
#include "lab/ledger/ledger_impl.h"

namespace stet {
namespace {

constexpr const char* kBegun = "begun";

const char* end_name(SubmissionEnd end) {
  switch (end) {
    case SubmissionEnd::taken:
      return "taken";
    case SubmissionEnd::refused:
      return "refused";
    case SubmissionEnd::not_sent:
      return "not sent";
  }
  return "";
}

void append(Database& database, const std::string& subject, const std::string& text, const std::string& condition) {
  Statement s(database, "INSERT INTO journal(at, kind, subject, text, condition) VALUES(?, 'submit', ?, ?, ?)",
              utc_now(), subject, text, condition);
  s.step();
}

}  // namespace

void Ledger::begin_submission(const std::string& subject, const std::string& text) {
  WriteTransaction transaction(impl_->database);
  Statement last(
      impl_->database,
      "SELECT at, text, condition FROM journal WHERE kind = 'submit' AND subject = ? ORDER BY id DESC LIMIT 1",
      subject);
  if (last.step()) {
    if (last.text(2) == end_name(SubmissionEnd::taken))
      fail(Code::kUsage, "this row was taken on {} ({}), and a row is never sent twice", last.text(0), last.text(1));
    if (last.text(2) == kBegun)
      fail(Code::kUsage,
           "this row was sent on {} ({}), and what became of it is not known: look at the board; it is not sent again",
           last.text(0), last.text(1));
  }
  append(impl_->database, subject, text, kBegun);
  transaction.commit();
}

void Ledger::end_submission(const std::string& subject, SubmissionEnd end, const std::string& text) {
  WriteTransaction transaction(impl_->database);
  append(impl_->database, subject, text, end_name(end));
  transaction.commit();
}

}  // namespace stet
