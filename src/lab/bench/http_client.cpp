#include "lab/bench/http_client.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/beast/http.hpp>
#include <cstring>
#include <sstream>

#include "base/error.h"
#include "lab/metrics/system.h"

namespace stet {
namespace {

namespace http = boost::beast::http;

constexpr int kPollMs = 100;
constexpr size_t kReadBytes = 1 << 16;
constexpr uint32_t kHeaderBytes = 1 << 16;
constexpr int kSuccess = 200;

// What ends a request: its text is the record's error.
struct Broken {
  std::string why;
};
struct Left {};

std::string system_error(std::string_view what, int error) { return fmt::format("{}: {}", what, std::strerror(error)); }

int64_t after(double seconds) { return monotonic_ns() + static_cast<int64_t>(seconds * 1e9); }

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

// Asked while nothing happens; throws to end it.
using Idle = std::function<void(int64_t now_ns)>;

// Returns when the socket can be read from or written to. Throws Broken{why} at the deadline.
void wait_for(int fd, short events, int64_t deadline_ns, const std::string& why, const Idle& idle) {
  for (;;) {
    pollfd p = {fd, events, 0};
    const int64_t now = monotonic_ns();
    if (now >= deadline_ns) throw Broken{why};
    const int64_t left_ms = (deadline_ns - now) / 1000000 + 1;
    const int ready = ::poll(&p, 1, static_cast<int>(std::min<int64_t>(left_ms, kPollMs)));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) throw Broken{system_error("poll", errno)};
    idle(monotonic_ns());
  }
}

Socket connect_to(const sockaddr* address, socklen_t bytes, int family, const HttpLimits& limits, const Idle& idle) {
  Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.fd() < 0) throw Broken{system_error("no socket", errno)};
  if (::connect(socket.fd(), address, bytes) != 0) {
    if (errno != EINPROGRESS && errno != EAGAIN) throw Broken{system_error("cannot connect", errno)};
    wait_for(socket.fd(), POLLOUT, after(limits.connect_seconds),
             fmt::format("no connection within {} s", limits.connect_seconds), idle);
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) throw Broken{system_error("cannot connect", error)};
  }
  const int on = 1;
  if (family != AF_UNIX) ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

Socket open_socket(const Endpoint& endpoint, const HttpLimits& limits, const Idle& idle) {
  if (!endpoint.unix_path.empty()) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, endpoint.unix_path.data(),
                std::min(endpoint.unix_path.size(), sizeof address.sun_path - 1));
    return connect_to(reinterpret_cast<sockaddr*>(&address), sizeof address, AF_UNIX, limits, idle);
  }
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int error = ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (error != 0) throw Broken{fmt::format("the host '{}' is not known: {}", endpoint.host, ::gai_strerror(error))};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  for (const addrinfo* a = found;; a = a->ai_next) {
    try {
      return connect_to(a->ai_addr, a->ai_addrlen, a->ai_family, limits, idle);
    } catch (const Broken&) {  // a name may stand for several addresses
      if (a->ai_next == nullptr) throw;
    }
  }
}

void write_all(int fd, std::string_view bytes, const HttpLimits& limits, const Idle& idle) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      wait_for(fd, POLLOUT, after(limits.idle_seconds),
               fmt::format("the server took no bytes for {} s", limits.idle_seconds), idle);
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return;  // it may have answered before it had read everything
    } else if (errno != EINTR) {
      throw Broken{system_error("cannot send", errno)};
    }
  }
}

std::string request_text(const std::string& method, const Endpoint& endpoint, const std::string& path,
                         const std::string& api_key, const std::string& body) {
  http::request<http::string_body> request;
  request.version(11);
  request.method_string(method);
  request.target(endpoint.prefix + path);
  request.set(http::field::host, endpoint.authority());
  request.set(http::field::connection, "close");
  request.set(http::field::user_agent, "stet-bench");
  if (!api_key.empty()) request.set(http::field::authorization, "Bearer " + api_key);
  if (!body.empty()) {
    request.set(http::field::content_type, "application/json");
    request.body() = body;
    request.prepare_payload();
  }
  std::ostringstream out;
  out << request;
  return out.str();
}

// Reads one reply into a record.
class ReplyReader {
 public:
  ReplyReader(HttpReplyRecord& record, const HttpClient::Sink* sink, size_t body_bytes) : record_(record), sink_(sink) {
    parser_.eager(true);
    parser_.header_limit(kHeaderBytes);
    parser_.body_limit(sink ? boost::none : boost::optional<uint64_t>(body_bytes));
  }

  bool done() { return parser_.is_done(); }

  // Bytes that one read brought, at that time.
  void take(int64_t arrival_ns, std::string_view bytes) {
    pending_ += bytes;
    while (!pending_.empty() && !parser_.is_done()) {
      boost::system::error_code error;
      const size_t used = parser_.put(boost::asio::buffer(pending_), error);
      pending_.erase(0, used);
      keep_header();
      if (!hand_over(arrival_ns)) throw Left{};
      if (error == http::error::need_more) return;
      if (error) throw Broken{fmt::format("the reply is no HTTP: {}", error.message())};
    }
  }

  void end_of_connection() {
    boost::system::error_code error;
    const bool framed = parser_.is_header_done() && !parser_.need_eof();
    if (!parser_.is_header_done()) throw Broken{"the server closed the connection without a reply"};
    if (framed) throw Broken{"the server closed the connection before its reply was complete"};
    parser_.put_eof(error);
    if (error) throw Broken{fmt::format("the reply ended early: {}", error.message())};
  }

 private:
  void keep_header() {
    if (has_header_ || !parser_.is_header_done()) return;
    has_header_ = true;
    record_.status = parser_.get().result_int();
    for (const auto& field : parser_.get()) {
      std::string name(field.name_string());
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      record_.headers[name] = std::string(field.value());
    }
  }

  bool hand_over(int64_t arrival_ns) {
    std::string& body = parser_.get().body();
    if (body.empty()) return true;
    if (!sink_ || record_.status != kSuccess) {
      record_.body += body;
      body.clear();
      return true;
    }
    const bool go_on = (*sink_)(arrival_ns, body);
    body.clear();
    return go_on;
  }

  HttpReplyRecord& record_;
  const HttpClient::Sink* sink_;
  http::response_parser<http::string_body> parser_;
  std::string pending_;
  bool has_header_ = false;
};

void read_reply(int fd, ReplyReader& reader, const HttpLimits& limits, const Idle& idle) {
  std::string bytes(kReadBytes, '\0');
  int64_t deadline = after(limits.first_byte_seconds);
  std::string why = fmt::format("no reply within {} s", limits.first_byte_seconds);
  while (!reader.done()) {
    wait_for(fd, POLLIN, deadline, why, idle);
    const ssize_t n = ::recv(fd, bytes.data(), bytes.size(), 0);
    const int64_t arrival = monotonic_ns();
    if (n == 0) return reader.end_of_connection();
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n < 0) throw Broken{system_error("the connection broke", errno)};
    reader.take(arrival, std::string_view(bytes).substr(0, static_cast<size_t>(n)));
    deadline = after(limits.idle_seconds);
    why = fmt::format("nothing came for {} s", limits.idle_seconds);
  }
}

}  // namespace

HttpClient::HttpClient(Endpoint endpoint, std::string api_key, HttpLimits limits, std::function<bool()> stop)
    : endpoint_(std::move(endpoint)), api_key_(std::move(api_key)), limits_(limits), stop_(std::move(stop)) {}

HttpReplyRecord HttpClient::get(const std::string& path) { return send("GET", path, "", nullptr, nullptr); }
HttpReplyRecord HttpClient::post(const std::string& path, const std::string& json) {
  return send("POST", path, json, nullptr, nullptr);
}
HttpReplyRecord HttpClient::post_stream(const std::string& path, const std::string& json, const Sink& sink,
                                        const std::function<bool(int64_t)>& keep_open) {
  return send("POST", path, json, &sink, keep_open ? &keep_open : nullptr);
}

HttpReplyRecord HttpClient::send(const std::string& method, const std::string& path, const std::string& body,
                                 const Sink* sink, const std::function<bool(int64_t)>* keep_open) {
  HttpReplyRecord record;
  const Idle interrupted = [&](int64_t) {
    if (stop_ && stop_()) fail(Code::kCancelled, "interrupted while waiting for {}", endpoint_.shown());
  };
  const Idle idle = [&](int64_t now_ns) {
    interrupted(now_ns);
    if (keep_open && !(*keep_open)(now_ns)) throw Left{};
  };
  try {
    const std::string text = request_text(method, endpoint_, path, api_key_, body);
    const Socket socket = open_socket(endpoint_, limits_, interrupted);
    record.sent_ns = monotonic_ns();
    write_all(socket.fd(), text, limits_, interrupted);
    ReplyReader reader(record, sink, limits_.body_bytes);
    read_reply(socket.fd(), reader, limits_, idle);
    record.complete = true;
  } catch (const Broken& broken) {
    record.error = broken.why;
  } catch (const Left&) {
    record.left = true;
  }
  record.end_ns = monotonic_ns();
  if (record.sent_ns == 0) record.sent_ns = record.end_ns;
  return record;
}

}  // namespace stet
