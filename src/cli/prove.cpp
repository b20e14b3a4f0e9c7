// stet prove: the promise, checked on one prompt.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/model_flags.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "engine/model_names.h"
#include "engine/parts.h"
#include "lab/prove.h"

namespace stet {
namespace {

struct ProveFlags {
  ModelFlags model;
  std::string prompt, draft;
  uint32_t tokens = 64;
  bool raw = false, json = false;

  void declare(Flags& flags) {
    model.declare_model(flags);
    flags.section("Proof");
    flags.text("-p,--prompt", "TEXT", &prompt, "the prompt to run in every way");
    flags.toggle("--raw", &raw, "continue the text as it is, without the model's chat template");
    flags.count("--tokens", &tokens, 2, 4096, "output tokens a row (the scalar reference gets fewer)");
    flags.text("--draft-model", "FILE", &draft, "the model behind the draft 'model'; the target itself when absent");
    model.declare_machine(flags);
    flags.section("Output");
    flags.toggle("--json", &json, "print one JSON object (docs/cli.md)");
    flags.toggle("-q,--quiet", &model.quiet, "no progress");
  }
};

std::string row_line(const ProveRow& row) {
  return fmt::format("{}  {} {:>3} tokens {:6.2f} s  {}\n", row.equal ? "equal " : "DIFFER", row.digest, row.tokens, row.seconds, row.what);
}

std::string report_json(const ProveReport& report, const EngineInfo& info) {
  nlohmann::json rows = nlohmann::json::array();
  for (const ProveRow& r : report.rows)
    rows.push_back({{"setting", r.what}, {"digest", r.digest}, {"tokens", r.tokens}, {"equal", r.equal}, {"seconds", r.seconds}});
  const nlohmann::json out = {{"equal", report.equal()},         {"divergence", report.divergence}, {"rows", rows},
                              {"model", info.model_name},        {"synthetic", info.synthetic},     {"profile", info.profile},
                              {"activations", info.activations}, {"kv", info.kv}};
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

int prove_main(std::span<const std::string> arguments) {
  ProveFlags flags;
  Flags parser("prove", "Runs one prompt every way this machine can: instruction sets, threads, widths, prompt chunks, replay modes,\n"
                        "drafts and depths, after other requests and rollbacks, prefix cold and warm, greedy and sampled; each\n"
                        "factor alone, then all pairs. Prints one digest a row: all equal, or the first command that differs.");
  flags.declare(parser);
  if (!parser.parse(arguments)) return kExitOk;
  if (flags.prompt.empty()) fail(Code::kUsage, "no prompt given: -p TEXT");
  flags.model.check();
  // Blocks of the checkpoint that draft for it get rows of their own.
  if (const std::string own = own_draft(flags.model.options.model, flags.model.options.cache_dir); !own.empty())
    flags.model.options.draft = own;
  const std::unique_ptr<Engine> engine = flags.model.load();
  ProveOptions options;
  const ChatMessage message{"user", flags.prompt};
  options.prompt = flags.raw || !engine->has_chat_template() ? engine->tokenize(flags.prompt) : engine->tokenize_chat({&message, 1});
  options.tokens = flags.tokens;
  options.draft_model = flags.draft;
  ProgressLine progress(!flags.model.quiet);
  options.progress = [&](const ProveRow& row, size_t done, size_t total) {
    if (interrupts() > 0) fail(Code::kCancelled, "interrupted after {} of {} rows", done, total);
    progress.clear();
    if (!flags.json) write_out(row_line(row));
    progress.show(fmt::format("{} of {} rows", done, total));
  };
  const ProveReport report = prove(engine->parts(), options);
  progress.clear();
  if (flags.json) write_out(report_json(report, engine->info()));
  if (!report.equal()) {
    report_error(report.divergence);
    return kExitDiverged;
  }
  if (!flags.json) write_out(fmt::format("all {} rows equal{}\n", report.rows.size(), engine->info().synthetic ? " (synthetic model)" : ""));
  return kExitOk;
}

}  // namespace stet
