// One HTTP request at a time, each on a connection of its own, with the time of every read.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "lab/bench/endpoint.h"

namespace stet {

struct HttpLimits {
  double connect_seconds = 10;
  double first_byte_seconds = 900;  // from the request's last byte to the reply's first: a long prompt takes its time
  double idle_seconds = 120;        // between two reads after that
  size_t body_bytes = size_t{1} << 28;
};

inline constexpr int kHttpOk = 200;

struct HttpReplyRecord {
  int64_t sent_ns = 0;  // monotonic clock: the connection stood, and the first byte of the request was about to go
  int64_t end_ns = 0;   // when the last byte came, or what ended it instead
  int status = 0;       // 0: no reply
  std::map<std::string, std::string> headers;  // names in lower case; of several with one name the last
  std::string body;       // of replies that are not streamed, and of streams with a status that is not 200
  bool complete = false;  // the reply ended as its framing says: all bytes of its length, or its last chunk
  bool left = false;      // the sink ended it
  std::string error;      // what went wrong, "" if nothing did: never a reason to try again
};

class HttpClient {
 public:
  // api_key: sent as a bearer token where it is not empty. stop: asked about ten times a second; true ends what is
  // going on with Error(kCancelled).
  HttpClient(Endpoint endpoint, std::string api_key, HttpLimits limits = {}, std::function<bool()> stop = nullptr);

  // Never throws for what a server or a network does: that is in the record.
  HttpReplyRecord get(const std::string& path);
  HttpReplyRecord post(const std::string& path, const std::string& json);

  // The sink gets the body's bytes of a reply with status 200, and when they were read; where it returns false the
  // connection is closed at once. keep_open is asked while nothing comes, so that a client can leave before an answer
  // has begun.
  using Sink = std::function<bool(int64_t arrival_ns, std::string_view bytes)>;
  HttpReplyRecord post_stream(const std::string& path, const std::string& json, const Sink& sink,
                              const std::function<bool(int64_t now_ns)>& keep_open = nullptr);

  const Endpoint& endpoint() const { return endpoint_; }

 private:
  HttpReplyRecord send(const std::string& method, const std::string& path, const std::string& body, const Sink* sink,
                       const std::function<bool(int64_t)>* keep_open);

  Endpoint endpoint_;
  std::string api_key_;
  HttpLimits limits_;
  std::function<bool()> stop_;
};

}  // namespace stet
