// stet profile: where the time of a pass and of a cycle goes.
#include "lab/profile/profile.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/model_flags.h"
#include "cli/profile_report.h"
#include "cli/terminal.h"
#include "cli/verb.h"

namespace stet {
namespace {

struct ProfileFlags {
  ModelFlags model;
  ProfileOptions profile;
  std::string trace;
  bool all = false, json = false;

  void declare(Flags& flags) {
    model.declare_model(flags);
    flags.section("What is timed");
    flags.count("--context", &profile.context, 0, 1u << 24, "tokens before the pass and the cycles (100)");
    flags.count("--rows", &profile.rows, 1, kWideRows, "tokens of the pass (1)");
    flags.count("--cycles", &profile.cycles, 0, 4096,
                "cycles of the draft, verify, accept and commit; 0: only the pass (32)");
    flags.count("--repeats", &profile.repeats, 1, 100000, "runs of the pass (as many as take two seconds)");
    model.declare_draft(flags);
    model.declare_threads(flags);
    flags.toggle("--pin", &model.options.pin, "bind each thread to a processor");
    flags.choice("--isa", &model.options.isa, {"auto", "scalar", "avx2", "avxvnni", "avx512"},
                 "instruction set (auto: the last that the processor has)");
    flags.choice("--device", &model.options.device, {"cpu", "cuda", "auto"}, "where lists run (cpu)");
    flags.section("Output");
    flags.toggle("--all", &all, "a line for every stage instead of every kind of stage");
    flags.text("--trace", "FILE", &trace, "write a trace for chrome://tracing or Perfetto; replaces the file");
    flags.toggle("--json", &json, "print one JSON object (docs/cli.md)");
    flags.toggle("-q,--quiet", &model.quiet, "no progress");
  }
};

void write_trace(const ProfileFlags& flags, const ProfileReport& report, const EngineInfo& info) {
  const std::string about =
      fmt::format("stet profile of {} on {}", info.model_name, info.device == "cuda" ? info.device_name : info.isa);
  const std::string text = chrome_trace(report.trace, about);
  AtomicFile file(flags.trace, {.expected_bytes = text.size(), .overwrite = true});
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace

int profile_main(std::span<const std::string> arguments) {
  ProfileFlags flags;
  Flags parser("profile",
               "Times every stage of a pass against what plain reads of memory reach in the same process, and the "
               "phases of a cycle.\n"
               "The sums are compared with what was measured while nothing watched: exit code 7 when they miss it by "
               "more than 3 %.");
  flags.declare(parser);
  if (!parser.parse(arguments)) return kExitOk;
  if (!flags.trace.empty() && flags.profile.cycles == 0 && flags.model.options.device == "cpu")
    fail(Code::kUsage, "--trace shows cycles, and --cycles is 0: leave one of the two away");
  const uint32_t depth = flags.model.options.draft == "none"    ? 0
                         : flags.model.options.draft_depth == 0 ? kMaxDepth
                                                                : flags.model.options.draft_depth;
  flags.model.options.context = profile_context(flags.profile, depth);
  const std::unique_ptr<Engine> engine = flags.model.load_silently();
  ProgressLine progress(!flags.model.quiet);
  flags.profile.progress = [&](std::string_view what, uint32_t done, uint32_t total) {
    if (interrupts() > 0) fail(Code::kCancelled, "interrupted while {}", what);
    progress.show(total == 0 ? fmt::format("{}", what) : fmt::format("{}: {} of {}", what, done, total));
  };
  const ProfileReport report = profile(engine->parts(), flags.profile);
  progress.clear();
  if (!flags.trace.empty()) write_trace(flags, report, engine->info());
  write_out(flags.json ? profile_json(report, flags.profile, engine->info())
                       : profile_table(report, flags.profile, engine->info(), flags.all));
  if (report.reconciles()) return kExitOk;
  report_error(unreconciled(report) +
               ": more than 3 %, so the shares above are not to be trusted; leave the machine alone and run it again");
  return kExitUnproven;
}

}  // namespace stet
