// Lines from a person at a terminal, with editing and history (libedit). The history is in memory only: prompts are
// not written to disk unless somebody saves them.
#pragma once

#include <memory>
#include <string>

namespace stet {

class LineEditor {
 public:
  // REQUIRES: standard input and output are a terminal.
  LineEditor();
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  enum class Event {
    kLine,
    kInterrupt,  // Ctrl-C; line holds what had been typed
    kEnd,        // Ctrl-D on an empty line, or the terminal is gone
  };
  // Shows the prompt and reads a line, without its line break.
  Event read(const std::string& prompt, std::string& line);
  void remember(const std::string& line);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stet
