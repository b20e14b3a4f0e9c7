// The verbs of the command line.
//
// A verb is one file, src/cli/<name>.cpp, with the function <name>_main, and one line in verbs.def. It declares its
// flags (flags.h), does its work and returns the exit code; what goes wrong it throws as Error.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stet {

struct Verb {
  std::string_view name;
  std::string_view summary;
  // arguments: what follows the verb.
  int (*main)(std::span<const std::string> arguments);
};

#define VERB(name, summary) int name##_main(std::span<const std::string> arguments);
#include "cli/verbs.def"
#undef VERB

std::span<const Verb> verbs();

// The whole program: finds the verb, runs it, reports an error and returns the exit code of docs/cli.md.
int stet_main(std::span<const std::string> arguments);

}  // namespace stet
