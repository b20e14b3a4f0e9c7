// How the command line ends: the exit codes of docs/cli.md, and errors on standard error.
#pragma once

#include <string_view>

#include "base/error.h"

namespace stet {

enum ExitCode : int {
  kExitOk = 0,
  kExitInternal = 1,
  kExitUsage = 2,
  // kExitInput = 3: base/mapped_file.h
  kExitUnsupported = 4,
  kExitResource = 5,
  kExitDiverged = 6,
  kExitUnproven = 7,
  kExitInterrupted = 130,
};

int exit_code(Code code);

// "stet: error: ..." as one line on standard error, control characters visible.
void report_error(std::string_view message);

}  // namespace stet
