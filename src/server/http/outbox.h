// Bytes on their way to one client, written by whoever has them.
//
// What fits into the socket is written at once, on the caller's thread: a token reaches the client without waiting for
// another thread to wake. The rest is kept, up to a limit, and written by the transport when the socket has room again.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace stet::http {

class Outbox {
 public:
  using Clock = std::chrono::steady_clock;
  enum class State : uint8_t { empty, pending, overflowed, broken };

  // fd: a socket that does not block. wake: called, from any thread, when bytes are kept or nothing can be written any
  // more; not again before flush().
  Outbox(int fd, size_t limit_bytes, std::function<void()> wake);

  // Any thread. What does not fit any more is dropped, and the outbox has overflowed or is broken; from then on it
  // takes nothing. A piece that is larger than the limit is taken when less than the limit was kept before.
  void send(std::string_view bytes);

  // For the thread of the transport: writes what the socket takes.
  State flush();
  State state() const;
  // How long nothing of what is kept could be written.
  Clock::duration stalled() const;
  // The descriptor is not used after this.
  void close();

 private:
  // Writes from the front of bytes; returns what was taken.
  size_t write_some(std::string_view bytes);

  mutable std::mutex mutex_;
  const int fd_;
  const size_t limit_;
  const std::function<void()> wake_;
  std::string kept_;
  size_t sent_ = 0;  // of kept_
  Clock::time_point moved_;
  bool woken_ = false, closed_ = false;
  State fault_ = State::empty;
};

}  // namespace stet::http
