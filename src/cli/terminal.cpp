#include "cli/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/visible_text.h"
#include "cli/interrupt.h"

namespace stet {
namespace {

constexpr auto kProgressInterval = std::chrono::milliseconds(50);

// Returns 0 or the error.
int write_fully(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

bool colors() {
  static const bool wanted = [] {
    const char* no_color = std::getenv("NO_COLOR");
    return is_terminal(kStderr) && (no_color == nullptr || no_color[0] == '\0');
  }();
  return wanted;
}

// The first `columns` characters. Wide characters count as one: the line may wrap then, which does no harm.
std::string_view cut(std::string_view text, size_t columns) {
  size_t characters = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) == 0x80) continue;
    if (characters++ == columns) return text.substr(0, i);
  }
  return text;
}

}  // namespace

bool is_terminal(Stream stream) { return ::isatty(stream) == 1; }

unsigned terminal_columns(Stream stream) {
  struct winsize size = {};
  return ::ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void write_out(std::string_view bytes) {
  const int error = write_fully(kStdout, bytes);
  if (error == 0) return;
  if (error == EPIPE) fail(Code::kResource, "standard output was closed by its reader; what followed is lost");
  fail(Code::kResource, "standard output cannot be written: {}",
       error == EBADF ? "it is closed" : std::strerror(error));
}

void show_out(std::string_view text) {
  static const bool terminal = is_terminal(kStdout);
  if (!text.empty()) write_out(terminal ? visible_text(text, true) : text);
}

void write_err(std::string_view bytes) { (void)write_fully(kStderr, bytes); }

void say(std::string_view line) {
  const std::string text = visible_text(line);
  write_err(colors() ? fmt::format("\x1b[2mstet: {}\x1b[0m\n", text) : fmt::format("stet: {}\n", text));
}

void ProgressLine::show(std::string_view text) {
  const auto now = std::chrono::steady_clock::now();
  if (!enabled_ || (shown_ && now - last_ < kProgressInterval)) return;
  last_ = now;
  shown_ = true;
  const std::string visible = visible_text(text);
  write_err(fmt::format("\r{}\x1b[K", cut(visible, terminal_columns(kStderr) - 1)));
}

void ProgressLine::clear() {
  if (shown_) write_err("\r\x1b[K");
  shown_ = false;
}

void LoadProgress::operator()(std::string_view phase, uint64_t done, uint64_t total) {
  if (interrupts() > 0) fail(Code::kCancelled, "interrupted");
  if (done == 0 && total > 0) {
    if (quiet_ || said_.contains(phase)) return;
    said_.emplace(phase);
    line_.clear();
    say(phase);
  } else if (total > 0) {
    line_.show(fmt::format(
        "{}: {} %", phase,
        done >= total ? 100 : static_cast<int>(100.0 * static_cast<double>(done) / static_cast<double>(total))));
  } else {
    line_.show(phase);
  }
}

std::string read_all(int fd, std::string_view name) {
  std::string text;
  std::vector<char> buffer(size_t{1} << 16);
  for (;;) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n == 0) return text;
    if (n > 0) {
      text.append(buffer.data(), static_cast<size_t>(n));
      continue;
    }
    const int error = errno;
    if (interrupts() > 0) fail(Code::kCancelled, "interrupted");
    if (error != EINTR) fail(Code::kInput, "{}: cannot be read: {}", name, std::strerror(error));
  }
}

std::string read_text_file(const std::string& path) {
  if (path == "-") return read_all(kStdin, "standard input");
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    fail(errno == EACCES ? Code::kResource : Code::kInput, "{}: cannot be opened: {}", path, std::strerror(errno));
  struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } closer{fd};
  return read_all(fd, path);
}

}  // namespace stet
