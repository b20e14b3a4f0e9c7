#include "base/sigbus.h"

#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "base/mapped_file.h"
#include "base/visible_text.h"

namespace stet {
namespace {

// A list that only grows, so that the handler can walk it without a lock; entries are used again.
struct Mapping {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};  // 0: the entry is free
  char name[1024];                // complete before end is set
  size_t name_bytes = 0;
  Mapping* next = nullptr;
};
std::atomic<Mapping*> g_mappings{nullptr};
std::mutex g_mappings_mutex;  // writers only
struct sigaction g_previous;

struct Guard {
  uintptr_t begin;
  uintptr_t end;
  sigjmp_buf jump;
};
thread_local Guard* volatile t_guard = nullptr;

const Mapping* find_mapping(uintptr_t address) {
  for (const Mapping* m = g_mappings.load(std::memory_order_acquire); m != nullptr; m = m->next) {
    const uintptr_t end = m->end.load(std::memory_order_acquire);
    if (address < end && address >= m->begin.load(std::memory_order_relaxed)) return m;
  }
  return nullptr;
}

void write_all(const char* text, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = ::write(STDERR_FILENO, text, bytes);
    if (n <= 0) return;
    text += n;
    bytes -= static_cast<size_t>(n);
  }
}

// Only async-signal-safe calls from here on.
void on_sigbus(int signal, siginfo_t* info, void* context) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (Guard* guard = t_guard; guard != nullptr && address >= guard->begin && address < guard->end) {
    siglongjmp(guard->jump, 1);
  }
  if (const Mapping* m = find_mapping(address); m != nullptr && info->si_code > 0) {
    static constexpr char kBefore[] = "stet: ";
    static constexpr char kAfter[] =
        " shrank or could not be read while it was in use; check the file and its disk, then start again\n";
    write_all(kBefore, sizeof(kBefore) - 1);
    write_all(m->name, m->name_bytes);
    write_all(kAfter, sizeof(kAfter) - 1);
    _exit(kExitInput);
  }
  // Not ours: whoever handled it before does.
  if (g_previous.sa_flags & SA_SIGINFO) {
    g_previous.sa_sigaction(signal, info, context);
  } else if (g_previous.sa_handler != SIG_DFL && g_previous.sa_handler != SIG_IGN) {
    g_previous.sa_handler(signal);
  } else {
    ::signal(SIGBUS, SIG_DFL);
    if (info->si_code <= 0) ::raise(SIGBUS);  // sent by kill; a fault comes again by itself on return
  }
}

void install() {
  static const int installed = [] {
    struct sigaction action = {};
    action.sa_sigaction = on_sigbus;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &g_previous);
  }();
  (void)installed;
}

}  // namespace

void* register_mapping(const void* data, size_t bytes, const std::string& name) {
  install();
  const std::scoped_lock lock(g_mappings_mutex);
  Mapping* entry = g_mappings.load(std::memory_order_relaxed);
  while (entry != nullptr && entry->end.load(std::memory_order_relaxed) != 0) entry = entry->next;
  const bool fresh = entry == nullptr;
  if (fresh) entry = new Mapping;
  const std::string shown = visible_text(name);
  entry->name_bytes = std::min(shown.size(), sizeof(entry->name));
  std::memcpy(entry->name, shown.data(), entry->name_bytes);
  entry->begin.store(reinterpret_cast<uintptr_t>(data), std::memory_order_relaxed);
  entry->end.store(reinterpret_cast<uintptr_t>(data) + bytes, std::memory_order_release);
  if (fresh) {
    entry->next = g_mappings.load(std::memory_order_relaxed);
    g_mappings.store(entry, std::memory_order_release);
  }
  return entry;
}

void forget_mapping(void* entry) {
  const std::scoped_lock lock(g_mappings_mutex);
  static_cast<Mapping*>(entry)->end.store(0, std::memory_order_release);
}

bool guarded_copy(void* dst, const void* src, size_t bytes) {
  install();
  Guard guard;
  guard.begin = reinterpret_cast<uintptr_t>(src);
  guard.end = guard.begin + bytes;
  // The mask is saved, because the jump out of the handler must not leave signals blocked.
  if (sigsetjmp(guard.jump, 1) != 0) {
    t_guard = nullptr;
    return false;
  }
  t_guard = &guard;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the copy stays between the two stores
  std::memcpy(dst, src, bytes);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t_guard = nullptr;
  return true;
}

}  // namespace stet
