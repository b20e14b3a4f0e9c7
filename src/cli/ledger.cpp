// stet ledger: every attempt, and which ideas are closed.
#include "lab/ledger/ledger.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/ledger_text.h"
#include "cli/terminal.h"
#include "cli/verb.h"

namespace stet {
namespace {

using Json = nlohmann::ordered_json;

struct LedgerFlags {
  std::string action, argument, why, condition, file;
  bool json = false;

  void declare(Flags& flags) {
    flags.positional("ACTION", &action, "list, show, export, classes, close, reopen or note");
    flags.positional("WHAT", &argument,
                     "show: the id of an attempt; close, reopen, note: the name of a class of ideas");
    flags.text("--why", "TEXT", &why, "close, reopen, note: the reason");
    flags.text("--reopen-only-if", "TEXT", &condition, "close: what would have to be so for a new plan");
    flags.text("--ledger", "FILE", &file, "the ledger; default $XDG_DATA_HOME/stet/ledger.sqlite");
    flags.toggle("--json", &json, "print JSON (export always does)");
    flags.footer(
        "Nothing is ever removed from it. A plan in a closed class is refused unless it cites the closure: --cite "
        "ENTRY.");
  }
};

std::string shown_json(const Json& j) { return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string list(Ledger& ledger, bool json) {
  const std::vector<AttemptRow> rows = ledger.attempts();
  if (!json) return attempts_text(rows);
  Json all = Json::array();
  for (const AttemptRow& row : rows) all.push_back(attempt_json(row, true));
  return shown_json({{"attempts", all}});
}

std::string show(Ledger& ledger, const LedgerFlags& flags) {
  const AttemptRow row = ledger.attempt(static_cast<int64_t>(parse_whole("the id", flags.argument, 1, INT64_MAX)));
  return flags.json ? shown_json(attempt_json(row, true)) : attempt_text(row);
}

std::string classes(Ledger& ledger, bool json) {
  const std::vector<ClassState> states = ledger.classes();
  if (!json) return classes_text(states);
  Json all = Json::array();
  for (const ClassState& c : states) all.push_back(class_json(c));
  return shown_json({{"classes", all}});
}

std::string entry(int64_t id, bool json) { return json ? shown_json({{"entry", id}}) : fmt::format("entry {}\n", id); }

std::string act(Ledger& ledger, const LedgerFlags& f) {
  if (f.action == "list") return list(ledger, f.json);
  if (f.action == "show") return show(ledger, f);
  if (f.action == "export") return ledger_export(ledger);
  if (f.action == "classes") return classes(ledger, f.json);
  if (f.action == "close") return entry(ledger.close_class(f.argument, f.why, f.condition), f.json);
  if (f.action == "reopen") return entry(ledger.reopen_class(f.argument, f.why), f.json);
  if (f.why.empty()) fail(Code::kUsage, "a note needs --why TEXT");
  return entry(ledger.write_journal("note", f.argument, f.why), f.json);
}

}  // namespace

int ledger_main(std::span<const std::string> arguments) {
  LedgerFlags f;
  Flags flags("ledger", "Lists what was tried and what became of it; closes and reopens classes of ideas.");
  f.declare(flags);
  if (!flags.parse(arguments)) return kExitOk;
  static constexpr std::string_view kActions[] = {"list", "show", "export", "classes", "close", "reopen", "note"};
  if (std::find(std::begin(kActions), std::end(kActions), f.action) == std::end(kActions))
    fail(Code::kUsage, "{}; choose one of list, show, export, classes, close, reopen, note",
         f.action.empty() ? "stet ledger needs an action" : fmt::format("stet ledger has no action '{}'", f.action));
  const bool names_something = f.action == "show" || f.action == "close" || f.action == "reopen" || f.action == "note";
  if (names_something == f.argument.empty())
    fail(Code::kUsage, "stet ledger {} {}", f.action,
         names_something ? "needs the id or name that it is about" : "takes no name");
  Ledger ledger(f.file.empty() ? Ledger::default_path() : f.file);
  write_out(act(ledger, f));
  return kExitOk;
}

}  // namespace stet
