// stet spec-eval: a speculation policy judged by a contract: frozen before its prompts exist, two packs in two orders.
#include <algorithm>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/hash.h"
#include "cli/exit_code.h"
#include "cli/spec_eval_flags.h"
#include "cli/verb.h"
#include "lab/ledger/running.h"
#include "lab/spec_eval/trace.h"

namespace stet {
namespace {

std::string ledger_path(const SpecEvalFlags& flags) {
  return flags.ledger.empty() ? Ledger::default_path() : flags.ledger;
}

std::string hash_of(const std::string& text) { return sha256_hex(text.data(), text.size()); }

// How the ledger calls a manifest that was frozen in it.
std::string journal_subject(const std::string& sha256) { return "spec-eval manifest " + sha256; }

int freeze(const SpecEvalFlags& flags) {
  Ledger ledger(ledger_path(flags));
  const std::string text = manifest_json(flags.manifest(utc_now()));
  (void)parse_manifest(text);  // what could not be read back is refused before it is written
  AtomicFile file(flags.out, {.expected_bytes = text.size(), .overwrite = false, .mode = 0444});
  file.write(std::as_bytes(std::span(text)));
  file.commit();
  ledger.write_journal("note", journal_subject(hash_of(text)), flags.label.empty() ? "frozen" : flags.label);
  write_out(fmt::format("{}  {}\n", hash_of(text), flags.out));
  return kExitOk;
}

void check_frozen_here(Ledger& ledger, const std::string& sha256) {
  const std::vector<JournalRow> journal = ledger.journal();
  const auto is_it = [&](const JournalRow& row) { return row.subject == journal_subject(sha256); };
  if (std::none_of(journal.begin(), journal.end(), is_it))
    fail(Code::kUsage,
         "no manifest with the hash {}... was frozen in this ledger: it was changed since, or frozen elsewhere; freeze "
         "it again",
         sha256.substr(0, 12));
}

int exit_code_of(const EvalVerdict& v) {
  if (v.diverged) return kExitDiverged;
  return v.verdict == "void" || v.unproven() ? kExitUnproven : kExitOk;
}

int run(const SpecEvalFlags& flags) {
  EvalRun run = flags.run();
  Ledger ledger(ledger_path(flags));
  const std::string sha256 = hash_of(run.manifest_json);
  Attempt attempt = ledger.begin({.kind = "spec-eval",
                                  .label = run.manifest.label,
                                  .idea = run.manifest.idea,
                                  .cites = run.manifest.cites,
                                  .subject_sha256 = eval_subject_sha256(run.manifest),
                                  .plan_sha256 = sha256,
                                  .authority = Authority::until_treatment,
                                  .packet = flags.out});
  ProgressLine progress(!flags.model.quiet);
  run.progress = [&](const std::string& line) { progress.show(line); };
  try {
    check_frozen_here(ledger, sha256);
    const EvalOutcome outcome = run_evaluation(run, ledger, attempt);
    progress.clear();
    attempt.finish(ledger_outcome(run.manifest, outcome));
    write_out(flags.json ? outcome.results_json : spec_eval_text(run.manifest, outcome.verdict));
    if (!flags.model.quiet)
      say(fmt::format("the packet is {}; stet verify checks it, stet rerun asks the model again", flags.out));
    return exit_code_of(outcome.verdict);
  } catch (const Error& e) {
    progress.clear();
    attempt.fail(e.what(), e.code() == Code::kCancelled);
    throw;
  }
}

int trace(const SpecEvalFlags& flags) {
  write_traces(read_packet(flags.argument), [](const std::string& line) { write_out(line + "\n"); });
  return kExitOk;
}

}  // namespace

int spec_eval_main(std::span<const std::string> arguments) {
  SpecEvalFlags flags;
  Flags parser(
      "spec-eval",
      "Judges a speculation policy by the contract in the binary: frozen before its prompts exist, two packs in "
      "two launch orders,\ntarget-only, current and candidate, a trace of every cycle.");
  flags.declare(parser);
  if (!parser.parse(arguments)) return kExitOk;
  flags.check();
  if (flags.action == "trace") return trace(flags);
  return flags.action == "freeze" ? freeze(flags) : run(flags);
}

}  // namespace stet
