// stet synth: synthetic models as files.
#include "weights/synth.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/interrupt.h"
#include "cli/model_flags.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "formats/format.h"
#include "weights/gguf_writer.h"

namespace stet {
namespace {

std::string list_text() {
  std::string text = "synth:GEOMETRY:FORMAT or synth:GEOMETRY:FORMAT:SEED\n\ngeometries:\n";
  for (const SynthGeometry& g : synth_geometries())
    text += fmt::format(
        "  {:<12} {:>2} layers, {:>4} wide, {:>2} heads on {}, feed-forward {:>5}, {:>6} tokens, context {}\n", g.name,
        g.layers, g.hidden, g.heads, g.kv_heads, g.ffn, g.vocab, g.context);
  text += "\nformats:\n ";
  for (const FormatTraits& t : all_formats()) text += fmt::format(" {}", t.name);
  return text + "\n";
}

std::string list_json() {
  nlohmann::ordered_json j;
  j["geometries"] = nlohmann::ordered_json::array();
  for (const SynthGeometry& g : synth_geometries())
    j["geometries"].push_back({{"name", g.name},
                               {"layers", g.layers},
                               {"hidden", g.hidden},
                               {"heads", g.heads},
                               {"kv_heads", g.kv_heads},
                               {"head_dim", g.head_dim},
                               {"feed_forward", g.ffn},
                               {"vocab", g.vocab},
                               {"context", g.context}});
  j["formats"] = nlohmann::ordered_json::array();
  for (const FormatTraits& t : all_formats()) j["formats"].push_back(t.name);
  return j.dump() + "\n";
}

void write_model(const std::string& name, const std::string& out, bool overwrite) {
  const auto source = SynthSource::create(SynthSource::is_name(name) ? name : "synth:" + name);
  LoadProgress progress(false);
  WriteGgufOptions options;
  options.overwrite = overwrite;
  options.progress = [&](uint64_t done, uint64_t total) {
    if (done > 0) progress("writing " + out, done, total);
  };
  const uint64_t bytes = write_gguf(*source, out, options);
  progress.clear();
  say(fmt::format("wrote {}: {}, a synthetic model ({})", out, shown_bytes(bytes), source->identity()));
}

}  // namespace

int synth_main(std::span<const std::string> arguments) {
  std::string name, out;
  bool list = false, json = false, overwrite = false;
  Flags flags("synth", "Writes a synthetic model as a GGUF file: a real geometry and format with random weights.");
  flags.positional("NAME", &name, "GEOMETRY:FORMAT or GEOMETRY:FORMAT:SEED");
  flags.text("-o,--out", "FILE.gguf", &out, "the file to write");
  flags.toggle("--overwrite", &overwrite, "replace a file that is there");
  flags.toggle("--list", &list, "print the geometries and formats that there are");
  flags.toggle("--json", &json, "with --list: as one JSON object");
  flags.footer("Every verb takes the same name without a file: stet run -m synth:llama-1b:q4_0 -p Hello -n 32");
  if (!flags.parse(arguments)) return kExitOk;
  if (list) {
    write_out(json ? list_json() : list_text());
    return kExitOk;
  }
  if (name.empty())
    fail(Code::kUsage, "no model named: stet synth GEOMETRY:FORMAT --out FILE.gguf (stet synth --list)");
  if (out.empty()) fail(Code::kUsage, "no output file given: --out FILE.gguf");
  write_model(name, out, overwrite);
  return kExitOk;
}

}  // namespace stet
