#include "server/http/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>

#include "base/error.h"
#include "server/http/socket_exchange.h"

namespace stet::http {
namespace {

constexpr size_t kShownPath = 200;
// Between the last words of an answer that was cut off and the end of its connection, unless the client ends it first:
// time for a browser on a busy machine to hand them to its page.
constexpr std::chrono::milliseconds kLastWords{1'000};

double seconds_since(Connection::Clock::time_point then) {
  return std::chrono::duration<double>(Connection::Clock::now() - then).count();
}

std::string joined(std::string_view first, std::string_view second) { return fmt::format("{}, {}", first, second); }

}  // namespace

Connection::Connection(std::shared_ptr<Shared> shared, int fd)
    : shared_(std::move(shared)),
      socket_(shared_->io, fd),
      outbox_(fd, shared_->options.max_queued_bytes,
              [this] {
                boost::asio::post(shared_->io, [self = weak_from_this()] {
                  if (const auto c = self.lock()) c->write_on();
                });
              }),
      ends_(ends_of(fd)) {}

void Connection::start() {
  enter(State::idle, shared_->options.idle_timeout);
  wait_for_bytes();
}

void Connection::enter(State state, std::chrono::milliseconds timeout) {
  state_ = state;
  deadline_ = Clock::now() + timeout;
}

// ---- what comes in

void Connection::wait_for_bytes() {
  const bool full = state_ == State::busy && in_.size() >= shared_->options.max_ahead_bytes;
  if (receiving_ || full || peer_done_ || closed()) return;
  receiving_ = true;
  socket_.async_wait(socket_.wait_read, [self = shared_from_this()](const boost::system::error_code& error) {
    self->receiving_ = false;
    if (!error) self->receive();
  });
}

void Connection::receive() {
  if (closed()) return;
  std::string& scratch = shared_->scratch;
  const ssize_t n = ::recv(socket_.native_handle(), scratch.data(), scratch.size(), MSG_DONTWAIT);
  if (n == 0) return peer_closed();
  if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return cut();
  if (n > 0) {
    in_.append(scratch, 0, static_cast<size_t>(n));
    process();
  }
  wait_for_bytes();
}

void Connection::peer_closed() {
  peer_done_ = true;
  part();
}

// A client may send its requests, close its half and read the answers: those that are made already are written. Who closes
// while an answer is being made has left.
void Connection::part() {
  if (state_ == State::busy) {
    const std::shared_ptr<SocketExchange> answer = answer_.lock();
    if (answer && !answer->ended()) cut();
    return;  // else its end is under way to this thread, and comes here again
  }
  const bool answers_left = outbox_.state() == Outbox::State::pending;
  if (answers_left && state_ == State::idle) return say_goodbye();
  if (!answers_left || state_ != State::draining) cut();
}

void Connection::process() {
  if (state_ == State::draining) return in_.clear();
  while (state_ == State::idle || state_ == State::head || state_ == State::body) {
    if (state_ == State::idle) {
      if (in_.empty()) return;
      if (shared_->stopping) return close();
      reader_.emplace(shared_->options.max_header_bytes, shared_->options.max_body_bytes);
      arrived_ = Clock::now();
      id_ = 0;
      enter(State::head, shared_->options.header_timeout);
    }
    const size_t before = in_.size();
    take_in();
    if (in_.empty() || in_.size() == before) return;
  }
  if (state_ == State::draining) in_.clear();
}

void Connection::take_in() {
  in_.erase(0, reader_->feed(in_));
  if (reader_->state() == RequestReader::State::head_done) head_done();
  if (state_ == State::body) {
    charge_body(reader_->body_bytes());
    if (shared_->bodies_bytes > shared_->options.max_bodies_bytes)
      return refuse({503, "too many long requests at once; try again", "overloaded"});
  }
  if (reader_->state() == RequestReader::State::refused && state_ != State::draining) return refuse(reader_->refusal());
  if (reader_->state() == RequestReader::State::done && state_ == State::body) dispatch();
}

void Connection::head_done() {
  const RequestHead& head = reader_->head();
  id_ = ++shared_->last_id;
  Refusal why = check_framing(head);
  if (!why) {
    verdict_ = guard(shared_->options.guard, head, ends_.local);
    why = verdict_.refusal;
  }
  if (!why) why = check_abilities(head, shared_->options.max_body_bytes);
  if (why) return refuse(why);
  begin_body();
}

void Connection::begin_body() {
  enter(State::body, shared_->options.body_timeout);
  const bool waits = reader_->head().count("expect") != 0 && reader_->head().version >= 11 && in_.empty();
  reader_->read_body();
  if (waits && reader_->state() == RequestReader::State::body) send("HTTP/1.1 100 Continue\r\n\r\n");
  if (reader_->state() == RequestReader::State::body) in_.erase(0, reader_->feed(in_));
}

void Connection::charge_body(uint64_t bytes) {
  shared_->bodies_bytes = shared_->bodies_bytes - body_charge_ + bytes;
  body_charge_ = bytes;
}

// ---- answers

Framing Connection::framing(bool keep) const {
  Framing f{.keep_alive = keep && !shared_->stopping, .allow_origin = verdict_.allow_origin};
  if (reader_ && (reader_->state() == RequestReader::State::body || reader_->state() == RequestReader::State::done)) {
    f.version = reader_->head().version;
    f.keep_alive = f.keep_alive && reader_->head().keep_alive;
    f.head_only = reader_->head().method == "HEAD";
  }
  return f;
}

HttpRequest Connection::make_request() {
  const RequestHead& head = reader_->head();
  HttpRequest request{.id = id_,
                      .method = head.method == "HEAD" ? "GET" : head.method,
                      .path = verdict_.path,
                      .query = verdict_.query,
                      .headers = {},
                      .body = {},
                      .client = ends_.client,
                      .arrived = arrived_};
  for (const RequestHead::Field& field : head.fields) {
    const auto [it, fresh] = request.headers.emplace(field.name, field.value);
    if (!fresh) it->second = joined(it->second, field.value);
  }
  request.body = reader_->take_body();
  return request;
}

void Connection::dispatch() {
  const Framing frame = framing(true);
  const bool preflight = verdict_.preflight;
  last_ = false;
  enter(State::busy, {});
  deadline_ = Clock::time_point::max();
  const auto answer = std::make_shared<SocketExchange>(make_request(), frame, shared_from_this());
  answer_ = answer;
  if (preflight) return answer->reply(preflight_reply(reader_->head()));
  try {
    shared_->handler(answer);
  } catch (const std::exception& e) {
    answer->reply(error_reply({500, fmt::format("internal error: {}", e.what()), ""}));
  }
}

void Connection::answered(bool keep, bool cut) {
  boost::asio::post(shared_->io, [weak = weak_from_this(), keep, cut] {
    if (const auto self = weak.lock()) self->answer_ended(keep, cut);
  });
}

void Connection::run(std::function<void()> callback) { boost::asio::dispatch(shared_->io, std::move(callback)); }

void Connection::answer_ended(bool keep, bool cut) {
  if (state_ != State::busy) return;
  if (cut) shut_after_ = Clock::now() + kLastWords;
  answer_.reset();
  charge_body(0);
  verdict_ = {};
  if (!keep || shared_->stopping) return say_goodbye();
  enter(State::idle, shared_->options.idle_timeout);
  process();
  if (peer_done_ && !closed()) return part();
  wait_for_bytes();
}

void Connection::log_refusal(const Refusal& why) const {
  if (!shared_->options.log) return;
  const bool known = reader_ && reader_->state() != RequestReader::State::head && !reader_->head().method.empty();
  const std::string_view target = known ? std::string_view(reader_->head().target) : "-";
  const std::string_view path = target.substr(0, std::min(target.find('?'), kShownPath));
  shared_->options.log(fmt::format("#{} {} {} {} from {} in {:.3f} s: {}", id_, known ? reader_->head().method : "-",
                                   path, why.status, ends_.client, seconds_since(arrived_), why.message));
}

// The stream of requests cannot be trusted after this, so it ends.
void Connection::refuse(const Refusal& why) {
  if (id_ == 0) id_ = ++shared_->last_id;
  log_refusal(why);
  Framing frame{.keep_alive = false, .allow_origin = verdict_.allow_origin};
  frame.head_only = reader_ && reader_->head().method == "HEAD";
  outbox_.send(reply_bytes(error_reply(why), frame));
  say_goodbye();
}

// Closing a socket while the client still sends would destroy the answer on its way.
void Connection::say_goodbye() {
  charge_body(0);
  in_.clear();
  last_ = true;
  enter(State::draining, shared_->options.linger + shared_->options.stall_timeout);
  write_on();
  wait_for_bytes();
}

// ---- what goes out

void Connection::write_on() {
  if (closed()) return;
  switch (outbox_.flush()) {
    case Outbox::State::empty:
      if (last_ && !shut_ && Clock::now() >= shut_after_) {
        shut_ = true;
        ::shutdown(socket_.native_handle(), SHUT_WR);
        if (peer_done_) return close();
        enter(State::draining, shared_->options.linger);
      }
      return;
    case Outbox::State::pending:
      return wait_for_room();
    case Outbox::State::overflowed:
    case Outbox::State::broken:
      return cut();
  }
}

void Connection::wait_for_room() {
  if (writing_) return;
  writing_ = true;
  socket_.async_wait(socket_.wait_write, [self = shared_from_this()](const boost::system::error_code& error) {
    self->writing_ = false;
    if (!error) self->write_on();
  });
}

// ---- ends

bool Connection::peer_hung_up() {
  pollfd p{.fd = socket_.native_handle(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void Connection::tick() {
  if (closed()) return;
  if (outbox_.stalled() > shared_->options.stall_timeout) return cut();
  // Bytes that nobody reads hide the end of the stream behind them.
  if (state_ == State::busy && !receiving_ && peer_hung_up()) return cut();
  if (last_ && !shut_) write_on();
  if (Clock::now() < deadline_) return;
  if (state_ == State::head || state_ == State::body)
    return refuse(
        {408, state_ == State::head ? "the head of the request took too long" : "the body of the request took too long",
         ""});
  close();
}

void Connection::retire() {
  if (state_ == State::busy || state_ == State::draining) return;
  if (outbox_.state() == Outbox::State::empty) return close();
  say_goodbye();
}

void Connection::cut() {
  const std::shared_ptr<SocketExchange> answer = answer_.lock();
  answer_.reset();
  close();
  if (answer) answer->leave();
}

void Connection::close() {
  if (closed()) return;
  state_ = State::closed;
  charge_body(0);
  outbox_.close();
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace stet::http
