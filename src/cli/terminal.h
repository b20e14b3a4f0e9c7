// Standard output and standard error.
//
// Standard output carries what was asked for and nothing else. What a file, a model or a user wrote reaches a terminal
// with control characters made visible, and a pipe or file as the exact bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace stet {

enum Stream : int { kStdin = 0, kStdout = 1, kStderr = 2 };

bool is_terminal(Stream stream);

// Columns of the terminal, 80 when it does not say.
unsigned terminal_columns(Stream stream);

// Exact bytes to standard output, at once. Throws Error(kResource) when its reader is gone, it is closed, or the disk
// that it leads to is full.
void write_out(std::string_view bytes);

// Text that stet did not write, to standard output: see above.
void show_out(std::string_view text);

// To standard error; a failure is ignored, because there is no better place to report it.
void write_err(std::string_view bytes);

// "stet: ..." as a line on standard error, control characters visible. On a terminal it is dim, unless NO_COLOR is set.
void say(std::string_view line);

// One line on standard error that changes while something takes long. Shows nothing when standard error is no terminal.
class ProgressLine {
 public:
  explicit ProgressLine(bool enabled) : enabled_(enabled && is_terminal(kStderr)) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // At most about twenty times a second; control characters visible, cut to the terminal's width.
  void show(std::string_view text);
  void clear();

 private:
  bool enabled_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_;
};

// What Options::progress and PackOptions::progress report: how far a phase is, as a progress line; a message about
// something that has not begun, such as where how many bytes are about to be written, once as a line that stays.
class LoadProgress {
 public:
  explicit LoadProgress(bool quiet) : quiet_(quiet), line_(!quiet) {}
  // Throws Error(kCancelled) when the user interrupted.
  void operator()(std::string_view phase, uint64_t done, uint64_t total);
  void clear() { line_.clear(); }

 private:
  bool quiet_;
  ProgressLine line_;
  std::set<std::string, std::less<>> said_;
};

// Everything from a file descriptor. Throws Error(kCancelled) when the user interrupted, Error(kInput) when it cannot
// be read; name stands in the message.
std::string read_all(int fd, std::string_view name);

// The bytes of a file; "-" is standard input. Throws Error(kInput) when there is no such file or it cannot be read.
std::string read_text_file(const std::string& path);

}  // namespace stet
