// stet inspect: what is in a model file.
#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/inspect.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "engine/model_names.h"
#include "weights/gguf.h"

namespace stet {
namespace {

ModelSummary summarize_model(const std::string& name) {
  const std::unique_ptr<TensorSource> source = open_model(name, "");
  const auto* file = dynamic_cast<const GgufFile*>(source.get());
  return file != nullptr ? summarize(*file, name) : summarize(*source, name);
}

}  // namespace

int inspect_main(std::span<const std::string> arguments) {
  std::string model;
  bool json = false;
  Flags flags("inspect", "Shows what is in a model file, of formats that stet runs or not.");
  flags.positional("MODEL", &model, "a GGUF file, smollm2-135m, or synth:GEOMETRY:FORMAT");
  flags.toggle("--json", &json, "print one JSON object, everything complete");
  if (!flags.parse(arguments)) return kExitOk;
  if (model.empty()) fail(Code::kUsage, "no file given: stet inspect FILE");
  const ModelSummary summary = summarize_model(model);
  write_out(json ? inspect_json(summary) : inspect_text(summary));
  return kExitOk;
}

}  // namespace stet
