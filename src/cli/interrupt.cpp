#include "cli/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "cli/exit_code.h"

namespace stet {
namespace {

std::atomic<unsigned> count{0};
std::atomic<unsigned> limit_now{2};
std::atomic<bool> resumed{false};
int wake_pipe[2] = {-1, -1};
static_assert(std::atomic<unsigned>::is_always_lock_free);  // a signal handler may use it

void on_interrupt(int) {
  if (count.fetch_add(1) + 1 >= limit_now.load()) ::_exit(kExitInterrupted);
  const int error = errno;
  (void)!::write(wake_pipe[1], "", 1);  // a full pipe wakes as well
  errno = error;
}

// Both end a waiting read(): the line editor then looks at the terminal anew.
void on_resize(int) {}
void on_resume(int) { resumed.store(true); }

void handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);  // without SA_RESTART: read() returns
}

}  // namespace

void prepare_process() {
  // Open for reading only: reading ends at once, and writing still fails as it does on a closed stream.
  for (const int fd : {0, 1, 2})
    if (::fcntl(fd, F_GETFD) < 0) (void)!::open("/dev/null", O_RDONLY);
  if (wake_pipe[0] < 0 && ::pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) != 0)
    fail(Code::kResource, "no file descriptor is left; raise the limit (ulimit -n)");
  handle(SIGINT, on_interrupt);
  handle(SIGWINCH, on_resize);
  handle(SIGCONT, on_resume);
  handle(SIGPIPE, SIG_IGN);
}

void count_terminations() { handle(SIGTERM, on_interrupt); }

unsigned interrupts() { return count.load(); }
bool was_resumed() { return resumed.exchange(false); }
int interrupt_fd() { return wake_pipe[0]; }

unsigned take_interrupts() {
  const unsigned taken = count.exchange(0);
  char bytes[64];
  while (::read(wake_pipe[0], bytes, sizeof bytes) > 0) {
  }
  return taken;
}

void set_interrupt_limit(unsigned limit) { limit_now.store(limit); }

}  // namespace stet
