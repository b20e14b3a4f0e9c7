// stet compare: two arms, A/A first, then A-B-B-A on fresh processes; the verdict and its packet.
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/hash.h"
#include "cli/compare_flags.h"
#include "cli/compare_report.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "lab/ledger/running.h"

namespace stet {
namespace {

int exit_code_of(const CompareVerdict& v) {
  if (!v.equality.faults.empty()) return kExitDiverged;
  return v.verdict == "void" || !v.unproven.empty() ? kExitUnproven : kExitOk;
}

int freeze(const CompareFlags& flags, const CompareRun& run) {
  AtomicFile file(flags.freeze, {.expected_bytes = run.plan_json.size(), .overwrite = false, .mode = 0444});
  file.write(std::as_bytes(std::span(run.plan_json)));
  file.commit();
  const std::string hash = sha256_hex(run.plan_json.data(), run.plan_json.size());
  write_out(fmt::format("{}  {}\n", hash, flags.freeze));
  return kExitOk;
}

int compare(const CompareFlags& flags, CompareRun& run) {
  Ledger ledger(flags.ledger.empty() ? Ledger::default_path() : flags.ledger);
  Attempt attempt = ledger.begin({.kind = "compare",
                                  .label = run.plan.label,
                                  .idea = run.plan.idea,
                                  .cites = run.plan.cites,
                                  .subject_sha256 = subject_sha256(run.plan),
                                  .plan_sha256 = sha256_hex(run.plan_json.data(), run.plan_json.size()),
                                  .authority = run.plan.authority,
                                  .packet = flags.out});
  ProgressLine progress(!flags.quiet);
  run.options.stop = [] { return interrupts() > 0; };
  run.progress = [&](const std::string& line) { progress.show(line); };
  run.floor = [&](const std::vector<JudgedSeries>& floors) {
    progress.clear();
    if (!flags.json) write_out(floor_text(floors));
  };
  try {
    const CompareOutcome outcome = run_comparison(run, attempt);
    progress.clear();
    attempt.finish(ledger_outcome(run.plan, outcome.verdict, outcome.packet_sha256));
    write_out(flags.json ? outcome.results_json : verdict_text(run.plan, outcome.verdict, attempt.context_json()));
    if (!flags.quiet) say(fmt::format("the packet is {}; stet verify checks it", flags.out));
    return exit_code_of(outcome.verdict);
  } catch (const Error& e) {
    progress.clear();
    attempt.fail(e.what(), e.code() == Code::kCancelled);
    throw;
  }
}

}  // namespace

int compare_main(std::span<const std::string> arguments) {
  CompareFlags flags;
  Flags parser("compare",
               "Compares two arms: A/A first, which states the noise, then A-B-B-A on fresh processes, paired by "
               "prompt; a plan that\n"
               "is frozen before, a verdict that anybody can recompute from the packet.");
  flags.declare(parser);
  if (!parser.parse(arguments)) return kExitOk;
  flags.check(parser);
  CompareRun run = flags.run(utc_now());
  return flags.freeze.empty() ? compare(flags, run) : freeze(flags, run);
}

}  // namespace stet
