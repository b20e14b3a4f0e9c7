// stet state: what is going on.
#include "lab/ledger/state.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/ledger_text.h"
#include "cli/terminal.h"
#include "cli/verb.h"

namespace stet {
namespace {

struct StateFlags {
  std::optional<std::string> lane, next, protect, release;
  std::string why, file;
  bool json = false;

  void declare(Flags& flags) {
    flags.section("Write down (into the ledger, which forgets nothing)");
    flags.text("--lane", "TEXT", &lane, "the line of work that is followed from now on");
    flags.text("--next", "TEXT", &next, "what is to be done next");
    flags.text("--protect", "WHAT", &protect,
               "work that must not be touched: a packet, a branch, a service; with --why");
    flags.text("--release", "WHAT", &release, "it is protected no more");
    flags.text("--why", "TEXT", &why, "the reason");
    flags.section("Output");
    flags.text("--ledger", "FILE", &file, "the ledger; default $XDG_DATA_HOME/stet/ledger.sqlite");
    flags.toggle("--json", &json, "print one JSON object (docs/cli.md)");
  }

  void write(Ledger& ledger) const {
    if (protect && why.empty()) fail(Code::kUsage, "--protect {} needs --why TEXT", *protect);
    if (lane) ledger.write_journal("lane", "", *lane);
    if (next) ledger.write_journal("next", "", *next);
    if (protect) ledger.write_journal("protect", *protect, why);
    if (release) ledger.write_journal("release", *release, why);
  }
};

}  // namespace

int state_main(std::span<const std::string> arguments) {
  StateFlags f;
  Flags flags("state",
              "Says what is going on: the lane, the next action, protected work, what runs, what is unfinished.");
  f.declare(flags);
  if (!flags.parse(arguments)) return kExitOk;
  Ledger ledger(f.file.empty() ? Ledger::default_path() : f.file);
  f.write(ledger);
  const LabState state = lab_state(ledger);
  write_out(f.json ? state_json(state).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"
                   : state_text(state));
  return kExitOk;
}

}  // namespace stet
