#include "server/http/socket_exchange.h"

#include "base/error.h"

namespace stet::http {

SocketExchange::SocketExchange(HttpRequest request, Framing framing, std::shared_ptr<Connection> connection)
    : request_(std::move(request)), framing_(std::move(framing)), connection_(std::move(connection)) {}

SocketExchange::~SocketExchange() {
  if (stage_ == Stage::open) reply(error_reply({500, "internal error: the request was dropped without an answer", ""}));
  if (stage_ == Stage::streaming) cut_events();
}

// REQUIRES: the lock is held.
void SocketExchange::finish(bool keep) {
  stage_ = Stage::ended;
  on_gone_ = nullptr;
  connection_->answered(keep && framing_.keep_alive);
}

void SocketExchange::reply(HttpReply reply) {
  const std::string bytes = reply_bytes(reply, framing_);
  const std::lock_guard lock(mutex_);
  if (stage_ != Stage::open || gone_) return;
  connection_->send(bytes);
  finish(true);
}

void SocketExchange::begin_events(std::map<std::string, std::string> headers) {
  const std::string bytes = events_head(headers, framing_);
  const std::lock_guard lock(mutex_);
  if (stage_ != Stage::open || gone_) return;
  stage_ = Stage::streaming;
  connection_->send(bytes);
}

void SocketExchange::event(std::string_view data) {
  const std::string bytes = event_bytes(data, framing_);
  const std::lock_guard lock(mutex_);
  if (stage_ != Stage::streaming || gone_ || framing_.head_only) return;
  connection_->send(bytes);
}

void SocketExchange::end_events() {
  const std::lock_guard lock(mutex_);
  if (stage_ != Stage::streaming || gone_) return;
  if (!framing_.head_only) connection_->send(events_end(framing_));
  finish(framing_.version >= 11);
}

void SocketExchange::cut_events() {
  const std::lock_guard lock(mutex_);
  if (stage_ != Stage::streaming || gone_) return;
  finish(false);
}

bool SocketExchange::gone() const {
  const std::lock_guard lock(mutex_);
  return gone_;
}

void SocketExchange::on_gone(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (stage_ == Stage::ended) return;
    if (!gone_) {
      on_gone_ = std::move(callback);
      return;
    }
  }
  connection_->run(std::move(callback));
}

void SocketExchange::leave() {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    if (stage_ == Stage::ended || gone_) return;
    gone_ = true;
    callback = std::exchange(on_gone_, nullptr);
  }
  if (callback) callback();
}

}  // namespace stet::http
