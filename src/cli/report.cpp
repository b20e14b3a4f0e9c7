// stet report: a packet as one page of HTML.
#include "lab/report/report.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/terminal.h"
#include "cli/verb.h"

namespace stet {

int report_main(std::span<const std::string> arguments) {
  std::string path, out;
  ReportOptions options;
  bool quiet = false;
  Flags flags("report", "Checks a packet and writes it as one page of HTML: verdicts, figures, pictures.");
  flags.positional("PACKET", &path, "the folder of a packet");
  flags.text("-o,--out", "FILE.html", &out, "the file to write, one that is there is replaced; without it, standard output");
  flags.text("--request", "ID", &options.request, "draw this request chunk by chunk too");
  flags.toggle("-q,--quiet", &quiet, "nothing but errors on standard error");
  flags.footer("The page needs no script and asks nobody. A packet whose results do not follow from its raw events is refused.");
  if (!flags.parse(arguments)) return kExitOk;
  if (path.empty()) fail(Code::kUsage, "no packet given: stet report PACKET --out FILE.html");
  if (out.empty() && is_terminal(kStdout))
    fail(Code::kUsage, "a page is no text for a terminal: give --out FILE.html, or send standard output to a file");
  const std::string html = report_html(read_packet_for_report(path), options);
  if (out.empty()) {
    write_out(html);
    return kExitOk;
  }
  AtomicFile file(out, {.expected_bytes = html.size(), .overwrite = true});
  file.write(std::as_bytes(std::span(html)));
  file.commit();
  if (!quiet) say(fmt::format("wrote {}: {} bytes", out, html.size()));
  return kExitOk;
}

}  // namespace stet
