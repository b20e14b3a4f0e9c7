// The HTTP transport: sockets in, requests out, answers back. One thread does all of it; answers may come from any
// thread.
//
// What it promises:
// - requests of one connection are answered in order; what a client sends ahead is read ahead, up to a limit;
// - Host, Origin and key are checked (guard.h) before a body is read;
// - what a client sends, how long it takes, and what is kept for it are bounded;
// - a client that leaves is noticed while its answer is made. Closing only its sending half counts as leaving.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/http/exchange.h"
#include "server/http/guard.h"

namespace stet {

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;      // 0: any free one
  std::string unix_path;  // a socket in the file system instead, where not empty
  bool no_auth = false;   // allows an address that others reach, without keys
  http::GuardRules guard;

  size_t max_header_bytes = 64 << 10;
  uint64_t max_body_bytes = 64 << 20;
  uint64_t max_bodies_bytes = 256 << 20;  // of all clients together
  size_t max_ahead_bytes = 64 << 10;      // read ahead of a running answer
  size_t max_queued_bytes = 4 << 20;      // kept for one client that reads slowly
  uint32_t max_connections = 256;
  std::chrono::milliseconds header_timeout{10'000};  // a head, from its first byte
  std::chrono::milliseconds body_timeout{120'000};   // a body, from the end of its head
  std::chrono::milliseconds idle_timeout{75'000};    // between two requests
  std::chrono::milliseconds stall_timeout{30'000};   // a client that reads nothing of what is kept for it
  std::chrono::milliseconds linger{2'000};           // after the last answer, for the client to close

  // Told one line, without "stet: ", for every request that did not reach the handler, and once what is unusual about
  // the options. Control characters of clients are not made visible. On the transport's thread.
  std::function<void(std::string_view line)> log;
};

class HttpServer {
 public:
  HttpServer(HttpOptions options, HttpHandler handler);
  ~HttpServer();  // stop at once
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Takes the address; clients wait. Throws Error(kUsage) for one that others reach where there is neither a key nor
  // no_auth, and for a host that is unknown; Error(kResource) when it is in use or may not be used.
  void bind();
  // Begins to serve, on a thread of its own; binds first where that was not done.
  void start();
  // REQUIRES: bound. 0 for a socket in the file system.
  uint16_t port() const;
  // "http://127.0.0.1:8080", "unix:/run/stet.sock".
  std::string url() const;

  // Takes no new connections and requests, waits up to `grace` for the answers that are being made, cuts the rest off,
  // and returns when the thread has ended.
  void stop(std::chrono::milliseconds grace);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stet
