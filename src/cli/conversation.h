// `stet run` without a prompt: questions and answers in a terminal.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/line_editor.h"
#include "stet/engine.h"

namespace stet {

class Conversation {
 public:
  // request: how to answer; its prompt is not used. thinking: as Engine::tokenize_chat has it. engine outlives this.
  Conversation(Engine& engine, const Request& request, const std::string& system, std::optional<bool> thinking,
               bool quiet);

  // Until Ctrl-D, /exit or a second Ctrl-C. Returns the exit code.
  int run();

 private:
  enum class Next { kGoOn, kLeave };

  Next on_interrupt(bool typed);
  Next on_line(const std::string& line);
  Next on_command(std::string_view line);
  Next answer(const std::string& question);
  LineEditor::Event read_message(std::string& message);
  void set_system(std::string_view text);
  void save(const std::string& path);
  bool confirm(const std::string& question);
  std::vector<ChatMessage> messages() const;  // the system message first, when there is one

  Engine& engine_;
  Request request_;
  std::string system_;
  const std::optional<bool> thinking_;
  const bool quiet_;
  LineEditor editor_;
  std::vector<ChatMessage> turns_;
  bool interrupted_ = false;  // the last thing that happened was a Ctrl-C
};

}  // namespace stet
