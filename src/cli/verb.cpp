#include "cli/verb.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>
#include <vector>

#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"

namespace stet {
namespace {

constexpr Verb kVerbs[] = {
#define VERB(name, summary) {#name, summary, name##_main},
#include "cli/verbs.def"
#undef VERB
};

// As it is typed: spec_eval is the verb spec-eval.
std::string typed(std::string_view name) {
  std::string word(name);
  std::replace(word.begin(), word.end(), '_', '-');
  return word;
}

std::string program_help() {
  std::string text =
      "stet: runs one language model for one person, fast, and proves that the speed changed nothing.\n\n"
      "  stet run -m MODEL -p PROMPT       answer a prompt\n"
      "  stet run -m MODEL                 a conversation\n\n"
      "MODEL is a GGUF file, a folder from Hugging Face, smollm2-135m (the default model, which ./demo fetches), or a\n"
      "synthetic model such as synth:llama-1b:q4_0 (stet synth --list).\n\nVerbs:\n";
  for (const Verb& verb : kVerbs) text += fmt::format("  {:<12} {}\n", typed(verb.name), verb.summary);
  return text +
         "\n`stet VERB --help` lists the flags of a verb; docs/cli.md has the exit codes and what --json prints.\n";
}

int dispatch(std::span<const std::string> arguments) {
  const std::string word = arguments.empty() ? "" : arguments[0];
  if (word == "--help" || word == "-h" || word == "help") {
    write_out(program_help());
    return kExitOk;
  }
  if (word == "--version") {
    write_out("stet " STET_VERSION "\n");
    return kExitOk;
  }
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) {
    if (typed(verb.name) == word) return verb.main(arguments.subspan(1));
    names.push_back(typed(verb.name));
  }
  const std::string all = fmt::format("{}", fmt::join(names, ", "));
  if (word.empty()) fail(Code::kUsage, "no verb given; choose one of {} (stet --help)", all);
  const std::string near = closest(word, names);
  if (!near.empty()) fail(Code::kUsage, "there is no verb '{}'; did you mean {}? (stet --help)", word, near);
  fail(Code::kUsage, "there is no verb '{}'; choose one of {} (stet --help)", word, all);
}

}  // namespace

std::span<const Verb> verbs() { return kVerbs; }

int stet_main(std::span<const std::string> arguments) {
  try {
    prepare_process();
    return dispatch(arguments);
  } catch (const Error& e) {
    report_error(e.what());
    return exit_code(e.code());
  } catch (const std::bad_alloc&) {
    report_error("out of memory; choose a smaller --ctx or close other programs");
    return kExitResource;
  } catch (const std::exception& e) {
    report_error(fmt::format("internal error: {}; please report it with the command", e.what()));
    return kExitInternal;
  }
}

}  // namespace stet
