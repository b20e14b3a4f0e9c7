// stet inspect: what is in a model file.
#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/inspect.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "engine/model_names.h"

namespace stet {

int inspect_main(std::span<const std::string> arguments) {
  std::string model;
  bool json = false;
  Flags flags("inspect", "Shows what is in a model file, of formats that stet runs or not.");
  flags.positional("MODEL", &model, "a GGUF file, a folder from Hugging Face, smollm2-135m, or synth:GEOMETRY:FORMAT");
  flags.toggle("--json", &json, "print one JSON object, everything complete");
  if (!flags.parse(arguments)) return kExitOk;
  if (model.empty()) fail(Code::kUsage, "no file given: stet inspect FILE");
  const ModelSummary summary = summarize(*open_model(model, ""), model);
  write_out(json ? inspect_json(summary) : inspect_text(summary));
  return kExitOk;
}

}  // namespace stet
