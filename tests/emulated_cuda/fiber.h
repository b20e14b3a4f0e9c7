// Fibers: functions that hand the processor to each other. AddressSanitizer is told of every switch.
#pragma once

#include <cstddef>

namespace stet::emulated {

class Fiber {
 public:
  Fiber();  // the stack; of another fiber that has ended, where there is one
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Begins body(argument) at the next resume(). It must call suspend_last() in the end, and not return.
  void start(void (*body)(void*), void* argument);
  // By the scheduler: runs the fiber until it suspends.
  void resume();
  // By the fiber: back to the scheduler.
  void suspend();
  void suspend_last();

 private:
  void leave(bool last);
  static void enter(Fiber* self);

  void* stack_;
  void* stack_pointer_ = nullptr;
  void* scheduler_pointer_ = nullptr;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  void *fake_stack_ = nullptr, *scheduler_fake_stack_ = nullptr;
  const void* scheduler_stack_ = nullptr;
  size_t scheduler_stack_bytes_ = 0;
};

}  // namespace stet::emulated
