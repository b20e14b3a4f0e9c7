// stet logits: token ids in, the logits of every position out.
#include <optional>

#include "base/error.h"
#include "base/npy.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/model_flags.h"
#include "cli/terminal.h"
#include "cli/token_list.h"
#include "cli/verb.h"

namespace stet {
namespace {

// Returns the vocabulary's size.
uint64_t write_logits(Engine& engine, const std::vector<int32_t>& tokens, const std::string& path, bool quiet) {
  std::optional<NpyWriter> writer;
  uint64_t vocab = 0;
  ProgressLine progress(!quiet);
  engine.logits(tokens, [&](uint32_t position, std::span<const float> row) {
    if (interrupts() > 0) fail(Code::kCancelled, "interrupted; {} was not written", path);
    vocab = row.size();
    if (!writer) writer.emplace(path, NpyType::kF32, std::vector<uint64_t>{tokens.size(), vocab});
    writer->write(row);
    progress.show(fmt::format("{} of {} positions", position + 1, tokens.size()));
  });
  STET_CHECK(writer.has_value());
  writer->commit();
  return vocab;
}

}  // namespace

int logits_main(std::span<const std::string> arguments) {
  ModelFlags model;
  std::string list, out;
  Flags flags("logits", "Runs token ids through a model and writes the logits of every position, f32 [n, vocab].");
  model.declare_model(flags);
  model.declare_context(flags);
  flags.section("Input and output");
  flags.text("--tokens", "IDS", &list, "1,2,3 or a JSON array; - reads them from standard input");
  flags.text("-o,--out", "FILE.npy", &out, "the NumPy file to write; one that is there is replaced");
  flags.toggle("-q,--quiet", &model.quiet, "nothing but errors on standard error");
  model.declare_machine(flags);
  if (!flags.parse(arguments)) return kExitOk;
  model.check();
  if (list.empty()) fail(Code::kUsage, "no tokens given: --tokens 1,2,3");
  if (out.empty()) fail(Code::kUsage, "no output file given: --out FILE.npy");
  const std::vector<int32_t> tokens =
      list == "-" ? parse_token_list("standard input", read_text_file("-")) : parse_token_list("--tokens", list);
  const std::unique_ptr<Engine> engine = model.load();
  const uint64_t vocab = write_logits(*engine, tokens, out, model.quiet);
  if (!model.quiet)
    say(fmt::format("wrote {}: f32 [{}, {}], path {}", out, tokens.size(), vocab, engine->info().activations));
  return kExitOk;
}

}  // namespace stet
