#include "server/http/outbox.h"

#include <sys/socket.h>

#include <cerrno>

namespace stet::http {

Outbox::Outbox(int fd, size_t limit_bytes, std::function<void()> wake)
    : fd_(fd), limit_(limit_bytes), wake_(std::move(wake)), moved_(Clock::now()) {}

size_t Outbox::write_some(std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      done += static_cast<size_t>(n);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) fault_ = State::broken;
    break;
  }
  if (done > 0) moved_ = Clock::now();
  return done;
}

void Outbox::send(std::string_view bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || fault_ != State::empty || bytes.empty()) return;
    const size_t waiting = kept_.size() - sent_;
    if (waiting == 0) {
      bytes.remove_prefix(write_some(bytes));
      if (bytes.empty()) return;
      moved_ = Clock::now();
    }
    if (fault_ == State::empty) {
      if (waiting >= limit_) {
        fault_ = State::overflowed;
      } else {
        kept_.append(bytes);
      }
    }
    if (woken_) return;
    woken_ = true;
  }
  wake_();
}

Outbox::State Outbox::flush() {
  const std::lock_guard lock(mutex_);
  woken_ = false;
  if (closed_) return State::broken;
  if (fault_ != State::empty) return fault_;
  sent_ += write_some(std::string_view(kept_).substr(sent_));
  if (fault_ != State::empty) return fault_;
  if (sent_ == kept_.size()) {
    kept_.clear();
    kept_.shrink_to_fit();
    sent_ = 0;
    return State::empty;
  }
  if (sent_ > kept_.size() / 2) {
    kept_.erase(0, sent_);
    sent_ = 0;
  }
  woken_ = true;  // the transport waits for room by itself
  return State::pending;
}

Outbox::State Outbox::state() const {
  const std::lock_guard lock(mutex_);
  if (closed_) return State::broken;
  if (fault_ != State::empty) return fault_;
  return kept_.empty() ? State::empty : State::pending;
}

Outbox::Clock::duration Outbox::stalled() const {
  const std::lock_guard lock(mutex_);
  return kept_.empty() ? Clock::duration::zero() : Clock::now() - moved_;
}

void Outbox::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  kept_.clear();
}

}  // namespace stet::http
