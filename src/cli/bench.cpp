// stet bench: a suite asked of a server or of an engine, and a packet that others can check.
#include <unistd.h>

#include <ctime>

#include "base/error.h"
#include "base/hash.h"
#include "cli/bench_flags.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "cli/verb.h"

namespace stet {
namespace {

bool interrupted() { return interrupts() > 0; }

// With milliseconds, so that two runs have two plans.
std::string utc_milliseconds() {
  std::timespec now = {};
  std::timespec_get(&now, TIME_UTC);
  std::tm parts = {};
  ::gmtime_r(&now.tv_sec, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:03}Z", text, now.tv_nsec / 1000000);
}

// A progress line, with what was found in each answer as it comes.
class Progress {
 public:
  explicit Progress(bool quiet) : quiet_(quiet), line_(!quiet) {}

  void operator()(const BenchProgress& p) {
    if (quiet_) return;
    if (p.record != nullptr && !p.record->error.empty()) {
      line_.clear();
      say(fmt::format("{}, start {}, {}: {}", p.arm, p.start, p.planned->step_id, p.record->error));
    }
    line_.show(fmt::format("arm {}, start {} of {}, request {} of {}: {}", p.arm, p.start + 1, p.starts, p.request + 1,
                           p.requests, p.planned->step_id));
  }
  void clear() { line_.clear(); }

 private:
  bool quiet_;
  ProgressLine line_;
};

int exit_code_of(const BenchOutcome& outcome) {
  if (outcome.diverged) return kExitDiverged;
  return outcome.verdict == "valid" ? kExitOk : kExitUnproven;
}

int measure(const BenchFlags& flags, const BenchJob& job) {
  Ledger ledger(flags.ledger.empty() ? Ledger::default_path() : flags.ledger);
  const std::string plan = bench_plan_json(job);
  Attempt attempt = ledger.begin({.kind = "bench",
                                  .label = job.label,
                                  .idea = flags.idea,
                                  .cites = flags.cited(),
                                  .subject_sha256 = bench_subject_sha256(job),
                                  .plan_sha256 = sha256_hex(plan.data(), plan.size()),
                                  .authority = Authority::until_treatment,
                                  .packet = flags.out});
  Progress progress(flags.model.quiet);
  try {
    const BenchOutcome outcome = run_bench(job, flags.out, attempt, std::ref(progress));
    progress.clear();
    attempt.finish(ledger_outcome(outcome));
    write_out(flags.json ? outcome.results_json : bench_table(outcome.results_json));
    say(fmt::format("the packet is {}; stet verify checks it, stet rerun asks the model again", flags.out));
    return exit_code_of(outcome);
  } catch (const Error& e) {
    progress.clear();
    attempt.fail(e.what(), e.code() == Code::kCancelled);
    throw;
  }
}

int run_child() {
  engine_child(STDIN_FILENO, STDOUT_FILENO, interrupted);
  return kExitOk;
}

}  // namespace

int bench_main(std::span<const std::string> arguments) {
  if (arguments.size() == 1 && arguments[0] == "--engine-child") return run_child();
  BenchFlags flags;
  Flags parser(
      "bench",
      "Asks a suite of a server or of an engine, one request at a time, and writes a packet that anybody can check.");
  flags.declare(parser);
  if (!parser.parse(arguments)) return kExitOk;
  flags.check();
  BenchTarget target = flags.target(interrupted);
  BenchJob job = flags.job(target, utc_milliseconds(), interrupted);
  return measure(flags, job);
}

}  // namespace stet
