#include "cli/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cwchar>

#include "base/error.h"
#include "cli/interrupt.h"

namespace stet {
namespace {

constexpr int kHistoryLines = 1000;

}  // namespace

struct LineEditor::State {
  EditLine* editor = nullptr;
  History* history = nullptr;
  std::string prompt;

  std::string interrupted_line;

  static State* from(EditLine* editor) {
    void* state = nullptr;
    el_get(editor, EL_CLIENTDATA, &state);
    return static_cast<State*>(state);
  }
  static char* show_prompt(EditLine* editor) { return from(editor)->prompt.data(); }

  // Waits until something was typed. False: an interrupt came first.
  static bool wait(EditLine* editor) {
    pollfd sources[] = {{STDIN_FILENO, POLLIN, 0}, {interrupt_fd(), POLLIN, 0}};
    while (interrupts() == 0) {
      const int ready = ::poll(sources, 2, -1);
      if (ready > 0 && sources[0].revents != 0) return interrupts() == 0;
      if (ready > 0 && interrupts() == 0) (void)take_interrupts();  // of an interrupt that was taken already
      if (ready >= 0) continue;
      if (errno != EINTR) return false;
      if (was_resumed()) {                // the terminal may be in any mode, and show anything
        el_set(editor, EL_PREP_TERM, 0);  // else libedit takes it for prepared still
        el_set(editor, EL_PREP_TERM, 1);
        el_set(editor, EL_REFRESH);
      } else {
        el_resize(editor);
      }
    }
    return false;
  }

  // One character for libedit, whose own reader does not come back at an interrupt.
  static int read_character(EditLine* editor, wchar_t* character) {
    std::mbstate_t state{};
    for (;;) {
      if (!wait(editor)) {
        const LineInfo* line = el_line(editor);  // libedit drops what was typed
        from(editor)->interrupted_line.assign(line->buffer, line->lastchar);
        return -1;
      }
      char byte = 0;
      const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
      if (n <= 0) return static_cast<int>(n);
      const size_t bytes = std::mbrtowc(character, &byte, 1, &state);
      if (bytes == static_cast<size_t>(-2)) continue;
      if (bytes != static_cast<size_t>(-1)) return 1;
      state = {};  // not UTF-8: left out
    }
  }
};

LineEditor::LineEditor() : state_(std::make_unique<State>()) {
  // A person types UTF-8, whatever the environment says. Numbers stay as they are.
  std::setlocale(LC_CTYPE, "C.UTF-8");
  state_->editor = el_init("stet", stdin, stdout, stderr);
  state_->history = history_init();
  if (state_->editor == nullptr || state_->history == nullptr)
    fail(Code::kResource, "the line editor could not be set up on this terminal; give a prompt with -p or a pipe");
  HistEvent event;
  history(state_->history, &event, H_SETSIZE, kHistoryLines);
  history(state_->history, &event, H_SETUNIQUE, 1);
  el_set(state_->editor, EL_CLIENTDATA, state_.get());
  el_set(state_->editor, EL_PROMPT, State::show_prompt);
  el_set(state_->editor, EL_EDITOR, "emacs");
  el_set(state_->editor, EL_HIST, history, state_->history);
  el_set(state_->editor, EL_GETCFN, State::read_character);
  el_set(state_->editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
}

LineEditor::~LineEditor() {
  if (state_->history != nullptr) history_end(state_->history);
  if (state_->editor != nullptr) el_end(state_->editor);
}

LineEditor::Event LineEditor::read(const std::string& prompt, std::string& line) {
  state_->prompt = prompt;
  state_->interrupted_line.clear();
  int bytes = 0;
  const char* text = el_gets(state_->editor, &bytes);
  line.clear();
  if (text != nullptr && bytes > 0) line.assign(text, static_cast<size_t>(bytes));
  if (line.ends_with('\n')) line.pop_back();
  if (interrupts() > 0) {
    line = state_->interrupted_line;
    return Event::kInterrupt;
  }
  return text == nullptr || bytes <= 0 ? Event::kEnd : Event::kLine;
}

void LineEditor::remember(const std::string& line) {
  HistEvent event;
  history(state_->history, &event, H_ENTER, line.c_str());
}

}  // namespace stet
