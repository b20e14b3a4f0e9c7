#include "cli/conversation.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/error.h"
#include "cli/answer.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "cli/transcript.h"

namespace stet {
namespace {

constexpr std::string_view kHelp =
    "/clear         forget the conversation; the system message stays\n"
    "/system TEXT   set the system message; /system alone shows it, /system - removes it\n"
    "/save FILE     write the conversation to a file: JSON when it ends in .json, else Markdown\n"
    "/help          this\n"
    "/exit          leave; so does Ctrl-D\n"
    "Ctrl-C stops an answer, or drops the line; a second one leaves.\n"
    "A line that ends with \\ goes on in the next one; // at its start sends a line that begins with /.\n";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

Conversation::Conversation(Engine& engine, const Request& request, const std::string& system,
                           std::optional<bool> thinking, bool quiet)
    : engine_(engine), request_(request), system_(system), thinking_(thinking), quiet_(quiet) {
  // One stops the answer, the second one leaves; the third is for when nothing listens.
  set_interrupt_limit(3);
  // Says now what would otherwise be said after the first question: no template, or one that takes no system message.
  std::vector<ChatMessage> first = messages();
  first.push_back({"user", "?"});
  (void)engine_.tokenize_chat(first, true, thinking_);
}

int Conversation::run() {
  if (!quiet_) say("/help lists the commands; Ctrl-C stops an answer, Ctrl-D leaves");
  for (;;) {
    std::string message;
    const LineEditor::Event event = read_message(message);
    Next next = Next::kGoOn;
    if (event == LineEditor::Event::kEnd) {
      write_out("\n");
      next = Next::kLeave;
    } else if (event == LineEditor::Event::kInterrupt) {
      next = on_interrupt(!message.empty());
    } else if (!trimmed(message).empty()) {
      next = on_line(message);
    }
    // One that comes from here on is the prompt's.
    if (take_interrupts() > 1 || next == Next::kLeave) return kExitOk;
  }
}

// Lines up to one that does not end with a backslash.
LineEditor::Event Conversation::read_message(std::string& message) {
  message.clear();
  for (;;) {
    std::string line;
    const LineEditor::Event event = editor_.read(message.empty() ? "> " : ". ", line);
    message += line;
    if (event != LineEditor::Event::kLine || !line.ends_with('\\')) return event;
    message.back() = '\n';
  }
}

Conversation::Next Conversation::on_interrupt(bool typed) {
  write_out("\n");
  if (interrupted_ && !typed) return Next::kLeave;
  interrupted_ = true;
  if (!typed) say("Ctrl-C again or Ctrl-D leaves");
  return Next::kGoOn;
}

Conversation::Next Conversation::on_line(const std::string& line) {
  interrupted_ = false;
  editor_.remember(line);
  if (line.starts_with("//")) return answer(line.substr(1));
  if (!line.starts_with('/')) return answer(line);
  try {
    return on_command(line);
  } catch (const Error& e) {
    report_error(e.what());
    return Next::kGoOn;
  }
}

Conversation::Next Conversation::on_command(std::string_view line) {
  const size_t space = line.find(' ');
  const std::string_view name = line.substr(0, space);
  const std::string_view argument = space == std::string_view::npos ? "" : trimmed(line.substr(space));
  if (name == "/exit" || name == "/quit" || name == "/bye") return Next::kLeave;
  if (name == "/help" || name == "/?") {
    write_out(kHelp);
  } else if (name == "/clear") {
    turns_.clear();
    say("the conversation begins anew");
  } else if (name == "/system") {
    set_system(argument);
  } else if (name == "/save") {
    save(std::string(argument));
  } else {
    fail(Code::kUsage, "there is no command {}; /help lists them, and // at the start of a line sends it as text",
         name);
  }
  return Next::kGoOn;
}

void Conversation::set_system(std::string_view text) {
  if (text.empty()) {
    say(system_.empty() ? "there is no system message" : fmt::format("the system message is: {}", system_));
    return;
  }
  system_ = text == "-" ? "" : text;
  say(system_.empty() ? "no system message from here on" : "the system message holds from the next answer on");
}

void Conversation::save(const std::string& path) {
  if (path.empty()) fail(Code::kUsage, "/save needs a file name");
  struct stat status = {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISREG(status.st_mode) && !confirm(fmt::format("{} exists; overwrite it? [y/N] ", path))) {
    say("not saved");
    return;
  }
  save_transcript(path, exists, engine_.info(), messages());
  say(fmt::format("saved to {}", path));
}

bool Conversation::confirm(const std::string& question) {
  std::string line;
  const LineEditor::Event event = editor_.read(question, line);
  return event == LineEditor::Event::kLine && (line == "y" || line == "Y" || line == "yes");
}

std::vector<ChatMessage> Conversation::messages() const {
  std::vector<ChatMessage> all;
  if (!system_.empty()) all.push_back({"system", system_});
  all.insert(all.end(), turns_.begin(), turns_.end());
  return all;
}

Conversation::Next Conversation::answer(const std::string& question) {
  turns_.push_back({"user", question});
  Generation reply;
  try {
    request_.prompt = engine_.tokenize_chat(messages(), true, thinking_);
    reply = generate_in_view(engine_, request_, {.show_text = true, .quiet = quiet_});
  } catch (const Error& e) {
    turns_.pop_back();
    report_error(
        fmt::format("{} (the question was dropped, the conversation before it stands; /clear begins anew)", e.what()));
    return Next::kGoOn;
  }
  interrupted_ = reply.finish == Finish::cancelled;
  if (reply.text.empty()) {
    turns_.pop_back();  // there is nothing that a next question could follow
    if (interrupted_) say("stopped before the answer began; the question was dropped");
  } else {
    turns_.push_back({"assistant", reply.text});
  }
  return Next::kGoOn;
}

}  // namespace stet
