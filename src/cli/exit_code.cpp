#include "cli/exit_code.h"

#include "base/mapped_file.h"
#include "base/visible_text.h"
#include "cli/terminal.h"

namespace stet {

int exit_code(Code code) {
  switch (code) {
    case Code::kUsage:
      return kExitUsage;
    case Code::kInput:
      return kExitInput;
    case Code::kUnsupported:
      return kExitUnsupported;
    case Code::kResource:
      return kExitResource;
    case Code::kDiverged:
      return kExitDiverged;
    case Code::kCancelled:
      return kExitInterrupted;
    case Code::kInternal:
      break;
  }
  return kExitInternal;
}

void report_error(std::string_view message) { write_err(fmt::format("stet: error: {}\n", visible_text(message))); }

}  // namespace stet
