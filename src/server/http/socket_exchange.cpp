#include "server/http/socket_exchange.h"

#include "base/error.h"

namespace stet::http {

SocketExchange::SocketExchange(HttpRequest request, Framing framing, std::shared_ptr<Connection> connection)
    : request_(std::move(request)), framing_(std::move(framing)), connection_(std::move(connection)) {}

SocketExchange::~SocketExchange() {
  if (stage_ == Stage::open) reply(error_reply({500, "internal error: the request was dropped without an answer", ""}));
  if (stage_ == Stage::streaming) cut_events();
}

std::function<void()> SocketExchange::finish(bool keep, bool cut) {
  stage_ = Stage::ended;
  connection_->answered(keep && framing_.keep_alive, cut);
  return std::exchange(on_gone_, nullptr);
}

void SocketExchange::reply(HttpReply reply) {
  const std::string bytes = reply_bytes(reply, framing_);
  std::function<void()> told_no_more;
  const std::lock_guard lock(mutex_);
  if (stage_ != Stage::open || gone_) return;
  connection_->send(bytes);
  told_no_more = finish(true);
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
  std::function<void()> told_no_more;
  const std::lock_guard lock(mutex_);
  if (stage_ != Stage::streaming || gone_) return;
  if (!framing_.head_only) connection_->send(events_end(framing_));
  told_no_more = finish(framing_.version >= 11);
}

void SocketExchange::cut_events() {
  std::function<void()> told_no_more;
  const std::lock_guard lock(mutex_);
  if (stage_ != Stage::streaming || gone_) return;
  told_no_more = finish(false, true);
}

bool SocketExchange::gone() const {
  const std::lock_guard lock(mutex_);
  return gone_;
}

bool SocketExchange::ended() const {
  const std::lock_guard lock(mutex_);
  return stage_ == Stage::ended;
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
