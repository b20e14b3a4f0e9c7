// stet replay --diff: two interpreters side by side, and the first bits that differ.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/model_flags.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "lab/diff/replay_diff.h"

namespace stet {
namespace {

struct ReplayFlags {
  ModelFlags model;
  std::string diff, prompt;
  uint32_t tokens = 16, rows = 1;
  bool raw = false, json = false;

  void declare(Flags& flags) {
    model.declare_model(flags);
    flags.section("Comparison");
    flags.text("--diff", "SIDE,SIDE", &diff,
               "what is compared: cpu, cpu:ISA, cuda; for example cpu,cuda or cpu:scalar,cpu");
    flags.text("-p,--prompt", "TEXT", &prompt, "the prompt that both run");
    flags.toggle("--raw", &raw, "continue the text as it is, without the model's chat template");
    flags.count("-n,--max-tokens", &tokens, 1, 65536,
                "output tokens, chosen by the first side; end tokens do not end it (16)");
    flags.count("--rows", &rows, 1, kNarrowRows, "above 1: the answer once more in verify passes of N rows (1)");
    flags.choice("--replay", &model.options.replay, {"eager", "recorded", "replayed"},
                 "only this form of the lists (all three, in this order)");
    model.declare_threads(flags);
    flags.section("Output");
    flags.toggle("--json", &json, "print one JSON object (docs/cli.md)");
    flags.toggle("-q,--quiet", &model.quiet, "no progress");
  }
};

nlohmann::json difference_json(const Difference& d) {
  nlohmann::json out = {{"form", form_name(d.form)},
                        {"pass", d.pass},
                        {"command", d.command},
                        {"tensor", d.tensor},
                        {"position", d.position}};
  if (d.head) {
    out["layer"] = d.layer;
    out["head"] = *d.head;
  } else {
    out["row"] = d.row;
  }
  out["index"] = d.index;
  for (const auto bits : d.bits) out["bits"].push_back(fmt::format("{:#x}", bits));
  // JSON has no NaN and no infinity.
  for (const float value : d.values) out["values"].push_back(fmt::format("{}", value));
  out["note"] = d.note;
  return out;
}

std::string diff_json(const DiffReport& r, const DiffOptions& o, const EngineInfo& info) {
  nlohmann::json forms = nlohmann::json::array();
  for (const ReplayMode form : o.forms) forms.push_back(form_name(form));
  const nlohmann::json out = {{"equal", !r.difference},
                              {"difference", r.difference ? difference_json(*r.difference) : nlohmann::json(nullptr)},
                              {"sides", {o.sides[0].text(), o.sides[1].text()}},
                              {"forms", forms},
                              {"prompt_tokens", o.prompt.size()},
                              {"token_ids", r.answer},
                              {"passes", r.passes},
                              {"commands", r.commands},
                              {"compared_values", r.values},
                              {"cache_values", r.cache_values},
                              {"model", info.model_name},
                              {"synthetic", info.synthetic},
                              {"activations", info.activations},
                              {"kv", info.kv}};
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string equal_line(const DiffReport& r, const DiffOptions& o, const EngineInfo& info) {
  std::string forms;
  for (const ReplayMode form : o.forms) forms += fmt::format("{}{}", forms.empty() ? "" : ", ", form_name(form));
  return fmt::format(
      "{} and {} equal: {} passes ({}; {} prompt tokens, {} of output), {} outputs of commands with {} values, {} "
      "values of KV rows{}\n",
      o.sides[0].text(), o.sides[1].text(), r.passes, forms, o.prompt.size(), r.answer.size(), r.commands, r.values,
      r.cache_values, info.synthetic ? " (synthetic model)" : "");
}

DiffOptions diff_options(const ReplayFlags& flags, const Engine& engine, bool one_form) {
  DiffOptions options;
  options.sides = parse_diff_sides(flags.diff);
  const ChatMessage message{"user", flags.prompt};
  options.prompt =
      flags.raw || !engine.has_chat_template() ? engine.tokenize(flags.prompt) : engine.tokenize_chat({&message, 1});
  if (options.prompt.empty()) fail(Code::kUsage, "the prompt is empty: there is nothing to run");
  options.tokens = flags.tokens;
  options.rows = flags.rows;
  options.threads = engine.info().threads;
  if (one_form) options.forms = {replay_mode(flags.model.options.replay)};
  return options;
}

}  // namespace

int replay_main(std::span<const std::string> arguments) {
  ReplayFlags flags;
  Flags parser("replay",
               "Runs two interpreters side by side on the same steps (the passes of a prompt, then decode passes) and "
               "compares what\n"
               "every command leaves and every row of the KV cache. All equal: one line with the counts. Else the "
               "first command,\n"
               "tensor, row and element that differ, with both bit patterns, and exit code 6.");
  flags.declare(parser);
  if (!parser.parse(arguments)) return kExitOk;
  if (flags.diff.empty())
    fail(Code::kUsage, "nothing to compare: name two sides, as in --diff cpu,cuda or --diff cpu:scalar,cpu");
  if (flags.prompt.empty()) fail(Code::kUsage, "no prompt given: -p TEXT");
  parse_diff_sides(flags.diff);  // before the model is loaded
  // The engine lends its weights and its tokenizer; the sides have decoders of their own.
  flags.model.options.qualify = false;
  flags.model.options.context = 1;
  const bool one_form = parser.given("--replay");
  const std::unique_ptr<Engine> engine = flags.model.load_silently();
  DiffOptions options = diff_options(flags, *engine, one_form);
  ProgressLine progress(!flags.model.quiet);
  options.progress = [&](std::string_view form, uint32_t done, uint32_t total) {
    if (interrupts() > 0)
      fail(Code::kCancelled, "interrupted after {} of {} passes of the {} form; nothing differed", done, total, form);
    progress.show(fmt::format("{}: {} of {} passes", form, done, total));
  };
  const DiffReport report = diff_replays(engine->parts(), options);
  progress.clear();
  if (flags.json) write_out(diff_json(report, options, engine->info()));
  if (report.difference) {
    report_error(report.difference->text(options.sides));
    return kExitDiverged;
  }
  if (!flags.json) write_out(equal_line(report, options, engine->info()));
  return kExitOk;
}

}  // namespace stet
