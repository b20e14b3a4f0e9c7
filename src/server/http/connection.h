// One client: what it sent, the answer that is being made for it, and what is still to be written.
//
//   idle -> head -> body -> busy -> idle ...        a request, and the next one
//   any  -> draining -> closed                      the last answer is written; what the client still sends is dropped
//   until it closes
//
// All functions run on the transport's thread unless they say otherwise; the end of a closed connection may come on
// any, with the last reference to its exchange. For the .cpp files of this folder: it brings Asio with it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "server/http/http_server.h"
#include "server/http/listener.h"
#include "server/http/outbox.h"
#include "server/http/request_reader.h"
#include "server/http/response.h"

namespace stet::http {

class SocketExchange;

// What the connections of a server share.
struct Shared {
  Shared(HttpOptions o, HttpHandler h) : options(std::move(o)), handler(std::move(h)), scratch(64 << 10, '\0') {}
  const HttpOptions options;
  const HttpHandler handler;
  boost::asio::io_context io{1};
  std::string scratch;        // what was just received
  uint64_t last_id = 0;       // of a request
  uint64_t bodies_bytes = 0;  // kept for all connections
  bool stopping = false;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;
  Connection(std::shared_ptr<Shared> shared, int fd);

  void start();
  // Several times a second: deadlines, stalled readers, clients that left unnoticed.
  void tick();
  // The server stops: a connection without a running answer is closed, another one after its answer.
  void retire();
  // The client is told to be gone, and the connection is closed.
  void cut();
  bool closed() const { return state_ == State::closed; }
  bool idle() const { return state_ == State::idle; }

  // Any thread: bytes of the running answer.
  void send(std::string_view bytes) { outbox_.send(bytes); }
  // Any thread: the running answer has ended; keep: another request may follow. cut: it is incomplete.
  void answered(bool keep, bool cut = false);
  // Any thread: calls it on the transport's thread; at once when this is that thread.
  void run(std::function<void()> callback);

 private:
  enum class State : uint8_t { idle, head, body, busy, draining, closed };

  void wait_for_bytes();
  void receive();
  void process();
  void take_in();
  void head_done();
  void begin_body();
  void dispatch();
  void answer_ended(bool keep, bool cut);
  void peer_closed();
  void part();
  void refuse(const Refusal& why);
  void say_goodbye();
  void write_on();
  void wait_for_room();
  void close();
  void enter(State state, std::chrono::milliseconds timeout);
  void charge_body(uint64_t bytes);
  bool peer_hung_up();
  HttpRequest make_request();
  Framing framing(bool keep) const;
  void log_refusal(const Refusal& why) const;

  const std::shared_ptr<Shared> shared_;
  boost::asio::posix::stream_descriptor socket_;
  Outbox outbox_;
  const Ends ends_;
  State state_ = State::idle;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point arrived_;
  std::string in_;  // received, not yet read
  std::optional<RequestReader> reader_;
  GuardVerdict verdict_;
  uint64_t id_ = 0;
  uint64_t body_charge_ = 0;
  std::weak_ptr<SocketExchange> answer_;
  bool receiving_ = false, writing_ = false;
  bool last_ = false, shut_ = false;  // nothing more is answered; our half is closed
  Clock::time_point shut_after_ = Clock::time_point::min();
  bool peer_done_ = false;  // the client closed its half
};

}  // namespace stet::http
