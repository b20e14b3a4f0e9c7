// The flags that say which model runs, and on what: the same for every verb that loads one.
#pragma once

#include <memory>

#include "cli/flags.h"
#include "cli/terminal.h"
#include "stet/engine.h"

namespace stet {

struct ModelFlags {
  Options options;
  bool quiet = false;

  void declare_model(Flags& flags);
  void declare_context(Flags& flags);
  void declare_threads(Flags& flags);  // of declare_machine(), what does not choose the kernels
  void declare_machine(Flags& flags);
  void declare_draft(Flags& flags);
  // What the flags contradict each other in. Throws Error(kUsage).
  void check() const;

  // Loads the model: says on standard error how far it is and, unless quiet, what was loaded.
  std::unique_ptr<Engine> load() const;
  // The same without the line about what was loaded: for verbs that take only a part of the engine.
  std::unique_ptr<Engine> load_silently() const;
};

// "SmolLM2 135M Instruct: 93.8 MiB of weights; context 8192 tokens (...)": one line about what was loaded.
std::string load_line(const EngineInfo& info);

// "93.8 MiB".
std::string shown_bytes(uint64_t bytes);

}  // namespace stet
