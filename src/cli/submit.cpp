// stet submit: a verified packet as a row of the board LocalMaxxing.
#include <fmt/ranges.h>

#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "lab/packet/teacher.h"
#include "lab/packet/verify.h"
#include "lab/submit/board.h"
#include "lab/submit/submission.h"

namespace stet {
namespace {

struct SubmitFlags {
  std::string packet, url, key_file, ledger;
  SubmitterWords words;
  bool dry_run = false, yes = false, quiet = false;

  void declare(Flags& flags) {
    flags.positional("PACKET", &packet, "the folder that stet bench wrote");
    flags.section("What the packet cannot know");
    flags.text("--arm", "NAME", &words.arm, "which arm (the only candidate, or the only arm)");
    flags.text("--hf-id", "OWNER/NAME", &words.hf_id, "where the weights were published");
    flags.text("--revision", "COMMIT", &words.revision, "of that repository, 40 hex digits");
    flags.text("--label", "TEXT", &words.label, "what the row is called (as the plan)");
    flags.section("Sending");
    flags.toggle("--dry-run", &dry_run, "print the payload and send nothing: what it does without --yes");
    flags.toggle("--yes", &yes, "send it; without this no connection is made");
    flags.text("--url", "URL", &url, "where to: http:// on this machine, for example the end of a tunnel");
    flags.text("--api-key-file", "FILE", &key_file, "the board's key, in a file that nobody else can read");
    flags.text("--ledger", "FILE", &ledger, "the ledger; default $XDG_DATA_HOME/stet/ledger.sqlite");
    flags.section("Output");
    flags.toggle("-q,--quiet", &quiet, "nothing but errors on standard error");
    flags.footer(
        "The packet is verified first. What it does not prove is refused by name, with exit code 7, and nothing is\n"
        "printed or sent.");
  }

  void check() const {
    if (packet.empty()) fail(Code::kUsage, "no packet given: stet submit PACKET --dry-run");
    if (dry_run && yes) fail(Code::kUsage, "--dry-run and --yes contradict each other");
    if (!yes && (!url.empty() || !key_file.empty()))
      fail(Code::kUsage, "--url and --api-key-file are for sending: give --yes too, or leave them out");
    if (yes && (url.empty() || key_file.empty()))
      fail(Code::kUsage, "to send, say where and as whom: --url URL and --api-key-file FILE");
  }
};

int send(const SubmitFlags& flags, const Submission& submission, const std::string& manifest) {
  BoardRequest request;
  request.address = board_address(flags.url);
  request.key = board_key(flags.key_file);
  request.payload = dump_line(submission.payload);
  request.subject = manifest + " " + submission.arm;
  request.stop = [] { return interrupts() > 0; };
  request.waiting = [&](double seconds) {
    if (!flags.quiet) say(fmt::format("the board asks to wait {:.0f} s; it is sent once more then", seconds));
  };
  Ledger ledger(flags.ledger.empty() ? Ledger::default_path() : flags.ledger);
  const BoardAnswer answer = send_to_board(ledger, request);
  if (!flags.quiet)
    say(fmt::format("the board took the row: HTTP {}{}", answer.status, answer.id.empty() ? "" : ", id " + answer.id));
  return kExitOk;
}

}  // namespace

int submit_main(std::span<const std::string> arguments) {
  SubmitFlags flags;
  Flags parser("submit", "Builds the row that the board LocalMaxxing takes from a packet, and prints it.");
  flags.declare(parser);
  if (!parser.parse(arguments)) return kExitOk;
  flags.check();
  const VerifyReport report = verify_packet(flags.packet);
  if (!report.mismatch.empty()) fail(Code::kDiverged, "{}: {}", flags.packet, report.mismatch);
  const std::string manifest = manifest_sha256(report.packet.path);
  const Submission submission = build_submission(report.packet, manifest, flags.words);
  if (!submission.refused.empty()) {
    report_error(fmt::format("{}, arm '{}', is no row for a board: {}", flags.packet, submission.arm,
                             fmt::join(submission.refused, "; ")));
    return kExitUnproven;
  }
  if (flags.yes) return send(flags, submission, manifest);
  write_out(queue_text(submission));
  return kExitOk;
}

}  // namespace stet
