// One HTTP request and the way to answer it: what the transport gives to the API, and all that the API sees of the
// transport.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace stet {

struct HttpRequest {
  uint64_t id = 0;                             // counts up from 1; 64 bits never wrap
  std::string method;                          // "GET"; HEAD comes as GET, and the answer is sent without its body
  std::string path;                            // "/v1/models", without the query
  std::string query;                           // what follows the '?', as sent
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::string client;  // "127.0.0.1:51002", "unix"
  std::chrono::steady_clock::time_point arrived;
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::map<std::string, std::string> headers = {};
};

// Functions may be called from any thread, and return at once; what they send is queued, bounded by the transport (a
// reader that is too slow is cut off). After the client has left, or after an answer has ended, they do nothing.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const HttpRequest& request() const = 0;

  // A whole answer. At most one of reply and begin_events is called, once.
  virtual void reply(HttpReply reply) = 0;

  // A stream of server-sent events: status 200, text/event-stream, chunked.
  virtual void begin_events(std::map<std::string, std::string> headers = {}) = 0;
  // "data: DATA\n\n". REQUIRES: DATA holds no line break.
  virtual void event(std::string_view data) = 0;
  // The stream is complete. Without it the connection is closed so that the client sees a cut stream.
  virtual void end_events() = 0;
  // Ends the stream visibly incomplete: everything queued is sent, then, a moment later, the connection is closed
  // without the last chunk. (A browser drops what it has not handed to its page yet when a connection breaks.)
  virtual void cut_events() = 0;

  // The client has closed the connection, or was cut off.
  virtual bool gone() const = 0;
  // Told once, on the transport's thread, when the client leaves before the answer has ended; at once if it already
  // has.
  virtual void on_gone(std::function<void()> callback) = 0;
};

// Called on the transport's thread for every request that passed its checks; must not block. An Exchange that is
// dropped without an answer gets 500.
using HttpHandler = std::function<void(std::shared_ptr<Exchange>)>;

}  // namespace stet
