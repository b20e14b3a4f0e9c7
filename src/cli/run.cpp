// stet run: one answer, or a conversation.
#include <optional>

#include "base/error.h"
#include "cli/answer.h"
#include "cli/conversation.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/model_flags.h"
#include "cli/run_report.h"
#include "cli/sampling_flags.h"
#include "cli/terminal.h"
#include "cli/verb.h"

namespace stet {
namespace {

struct RunFlags {
  ModelFlags model;
  SamplingFlags sampling;
  std::optional<std::string> prompt, file;
  std::string system;
  bool raw = false, json = false, think = false, no_think = false;

  void declare(Flags& flags) {
    model.declare_model(flags);
    model.declare_context(flags);
    flags.section("Prompt");
    flags.text("-p,--prompt", "TEXT", &prompt, "the prompt; without -p and -f it is read from a pipe");
    flags.text("-f,--file", "FILE", &file, "the prompt is the content of a file (- is standard input)");
    flags.text("-s,--system", "TEXT", &system, "a system message before the prompt");
    flags.toggle("--raw", &raw, "continue the text as it is, without the model's chat template");
    flags.toggle("--think", &think, "reason before the answer, where the model's chat template has a switch for it");
    flags.toggle("--no-think", &no_think, "answer at once (without either: as the model does by itself)");
    sampling.declare(flags);
    model.declare_draft(flags);
    model.declare_machine(flags);
    flags.section("Output");
    flags.toggle("--json", &json, "print one JSON object instead of the text (docs/cli.md)");
    flags.toggle("-q,--quiet", &model.quiet, "print the text, and nothing but errors on standard error");
    flags.footer(
        "The text goes to standard output, all else to standard error. Without a prompt, in a terminal, it is a\n"
        "conversation: /help there says more.");
  }

  std::optional<bool> thinking() const { return think || no_think ? std::optional(think) : std::nullopt; }

  void check() const {
    model.check();
    if (prompt && file) fail(Code::kUsage, "both --prompt and --file were given; choose one");
    if (raw && !system.empty())
      fail(Code::kUsage, "--raw and --system contradict each other: only a chat template has a system message");
    if (think && no_think) fail(Code::kUsage, "--think and --no-think contradict each other");
    if (raw && (think || no_think))
      fail(Code::kUsage, "--raw and --{}think contradict each other: only a chat template has a switch for reasoning",
           think ? "" : "no-");
  }
};

// The prompt, or nothing: then it is a conversation.
std::optional<std::string> read_prompt(const RunFlags& flags) {
  if (flags.prompt) return flags.prompt;
  if (!flags.file && is_terminal(kStdin)) {
    if (is_terminal(kStdout) && !flags.json && !flags.raw) return std::nullopt;
    fail(Code::kUsage,
         "no prompt given: use -p, -f or a pipe (a conversation needs a terminal for its output too, and "
         "neither --json nor --raw)");
  }
  std::string text = read_text_file(flags.file.value_or("-"));
  // Editors and echo end a text with a line break that nobody meant to ask about; --raw means every byte.
  if (!flags.raw && text.ends_with('\n')) text.pop_back();
  return text;
}

std::vector<int32_t> prompt_ids(const Engine& engine, const RunFlags& flags, const std::string& prompt) {
  if (flags.raw) return engine.tokenize(prompt);
  std::vector<ChatMessage> messages;
  if (!flags.system.empty()) messages.push_back({"system", flags.system});
  messages.push_back({"user", prompt});
  return engine.tokenize_chat(messages, true, flags.thinking());
}

int answer_once(Engine& engine, const RunFlags& flags, Request request, const std::string& prompt) {
  request.prompt = prompt_ids(engine, flags, prompt);
  const AnswerView view{.show_text = !flags.json, .quiet = flags.model.quiet};
  const Generation answer = generate_in_view(engine, request, view);
  if (flags.json) write_out(run_json(answer, engine.info(), request));
  return answer.finish == Finish::cancelled ? kExitInterrupted : kExitOk;
}

}  // namespace

int run_main(std::span<const std::string> arguments) {
  RunFlags flags;
  Flags parser("run", "Answers a prompt, or holds a conversation.");
  flags.declare(parser);
  if (!parser.parse(arguments)) return kExitOk;
  flags.check();
  const Request request = flags.sampling.request();
  const std::optional<std::string> prompt = read_prompt(flags);
  if (prompt && prompt->empty()) fail(Code::kUsage, "the prompt is empty: give some text with -p, -f or a pipe");
  const std::unique_ptr<Engine> engine = flags.model.load();
  if (prompt) return answer_once(*engine, flags, request, *prompt);
  return Conversation(*engine, request, flags.system, flags.thinking(), flags.model.quiet).run();
}

}  // namespace stet
