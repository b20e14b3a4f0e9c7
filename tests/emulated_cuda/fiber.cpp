#include "fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define STET_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STET_ASAN 1
#endif
#endif
#ifdef STET_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// Saves the registers that a call keeps, and the stack pointer in *from; goes on at `to`.
extern "C" void stet_switch_stack(void** from, void* to);
asm(R"(
.text
.globl stet_switch_stack
.type stet_switch_stack, @function
stet_switch_stack:
  endbr64
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size stet_switch_stack, .-stet_switch_stack
.section .note.GNU-stack,"",@progbits
.text
)");

namespace stet::emulated {
namespace {

constexpr size_t kStackBytes = 256 * 1024, kTopBytes = 4096;  // touched pages only are there; where an ended fiber left frames

std::vector<void*>& spare_stacks() {
  static std::vector<void*> stacks;
  return stacks;
}

// Where a fiber begins: enter() with its argument, which start() left in a register that a switch keeps.
extern "C" void stet_fiber_begin();
asm(R"(
.text
.globl stet_fiber_begin
.type stet_fiber_begin, @function
stet_fiber_begin:
  endbr64
  mov %rbx, %rdi
  call *%r12
  ud2
.size stet_fiber_begin, .-stet_fiber_begin
)");

}  // namespace

Fiber::Fiber() {
  if (!spare_stacks().empty()) {
    stack_ = spare_stacks().back();
    spare_stacks().pop_back();
    return;
  }
  stack_ = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack_ == MAP_FAILED) abort();
}

Fiber::~Fiber() { spare_stacks().push_back(stack_); }

void Fiber::start(void (*body)(void*), void* argument) {
  body_ = body;
  argument_ = argument;
#ifdef STET_ASAN
  ASAN_UNPOISON_MEMORY_REGION(static_cast<char*>(stack_) + kStackBytes - kTopBytes, kTopBytes);
#endif
  auto** top = reinterpret_cast<void**>(static_cast<char*>(stack_) + kStackBytes);
  top -= 2;                                             // a call wants its frame at a multiple of 16 bytes
  *--top = reinterpret_cast<void*>(&stet_fiber_begin);  // where the switch returns to
  *--top = nullptr;                                     // rbp
  *--top = this;                                        // rbx
  *--top = reinterpret_cast<void*>(&Fiber::enter);      // r12
  for (int i = 0; i < 3; ++i) *--top = nullptr;         // r13 to r15
  stack_pointer_ = top;
}

void Fiber::enter(Fiber* self) {
#ifdef STET_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &self->scheduler_stack_, &self->scheduler_stack_bytes_);
#endif
  self->body_(self->argument_);
  abort();
}

void Fiber::resume() {
#ifdef STET_ASAN
  __sanitizer_start_switch_fiber(&scheduler_fake_stack_, stack_, kStackBytes);
#endif
  stet_switch_stack(&scheduler_pointer_, stack_pointer_);
#ifdef STET_ASAN
  __sanitizer_finish_switch_fiber(scheduler_fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::leave([[maybe_unused]] bool last) {
#ifdef STET_ASAN
  __sanitizer_start_switch_fiber(last ? nullptr : &fake_stack_, scheduler_stack_, scheduler_stack_bytes_);
#endif
  stet_switch_stack(&stack_pointer_, scheduler_pointer_);
#ifdef STET_ASAN
  __sanitizer_finish_switch_fiber(fake_stack_, &scheduler_stack_, &scheduler_stack_bytes_);
#endif
}

void Fiber::suspend() { leave(false); }
void Fiber::suspend_last() {
  leave(true);
  abort();
}

}  // namespace stet::emulated
