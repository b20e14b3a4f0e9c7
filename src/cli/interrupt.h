// Ctrl-C: SIGINT is counted, and whoever runs long looks at the count between two steps.
#pragma once

namespace stet {

// Sets the process up: SIGINT is counted, a reader that closes its pipe is an error of write() and no signal, and a
// standard stream that is closed is opened on something harmless, so that no file takes its number.
void prepare_process();

// From now on a request to terminate (SIGTERM) counts as an interrupt; else it ends the process.
void count_terminations();

// Interrupts that nobody has taken yet.
unsigned interrupts();
// Takes them: returns their number and begins at 0 again.
unsigned take_interrupts();
// A file descriptor for poll(): can be read from soon after an interrupt came. Look at interrupts() before and after.
int interrupt_fd();

// Whether the process was stopped (Ctrl-Z) and goes on, since the last call.
bool was_resumed();

// The process ends at once, with exit code 130, at this many interrupts that nobody took. 2 at first.
void set_interrupt_limit(unsigned limit);

}  // namespace stet
