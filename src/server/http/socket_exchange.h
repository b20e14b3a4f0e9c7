// The exchange that a handler gets: it turns what the handler says into bytes, in order, once.
#pragma once

#include <mutex>

#include "server/http/connection.h"

namespace stet::http {

class SocketExchange : public Exchange {
 public:
  SocketExchange(HttpRequest request, Framing framing, std::shared_ptr<Connection> connection);
  ~SocketExchange() override;

  const HttpRequest& request() const override { return request_; }
  void reply(HttpReply reply) override;
  void begin_events(std::map<std::string, std::string> headers) override;
  void event(std::string_view data) override;
  void end_events() override;
  void cut_events() override;
  bool gone() const override;
  void on_gone(std::function<void()> callback) override;

  // On the transport's thread: the client has left.
  void leave();
  // Whether all of the answer was said.
  bool ended() const;

 private:
  enum class Stage : uint8_t { open, streaming, ended };
  // REQUIRES: the lock is held. What it returns is destroyed without it: it may hold the last reference to this
  // exchange.
  [[nodiscard]] std::function<void()> finish(bool keep, bool cut = false);

  const HttpRequest request_;
  const Framing framing_;
  const std::shared_ptr<Connection> connection_;
  mutable std::mutex mutex_;  // guards what follows, and the order of what is sent
  Stage stage_ = Stage::open;
  bool gone_ = false;
  std::function<void()> on_gone_;
};

}  // namespace stet::http
