// A client of raw bytes, and a server whose handler the test writes.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "server/http/http_server.h"

namespace stet::test {

constexpr int kPatience = 20'000;  // milliseconds: a test that waits longer has failed

class RawClient {
 public:
  explicit RawClient(uint16_t port, int receive_buffer = 0) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer != 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0) << std::strerror(errno);
  }
  explicit RawClient(const std::string& unix_path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, unix_path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0) << std::strerror(errno);
  }
  ~RawClient() { close(); }
  RawClient(RawClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)), got_(std::move(other.got_)) {}

  // False when the server has closed the connection.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  // With a reset instead of an end.
  void reset() {
    const linger l{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &l, sizeof l);
    close();
  }
  void half_close() { ::shutdown(fd_, SHUT_WR); }

  // Reads until the text stands in what was read, or the end; what was read up to and with it.
  std::string read_until(std::string_view text) {
    size_t at;
    while ((at = got_.find(text)) == std::string::npos)
      if (!receive()) return std::exchange(got_, "");
    return take(at + text.size());
  }
  std::string read_all() {
    while (receive()) {
    }
    return std::exchange(got_, "");
  }
  // One answer with a Content-Length, head and body.
  std::string read_answer() {
    std::string head = read_until("\r\n\r\n");
    const size_t at = head.find("Content-Length: ");
    if (at == std::string::npos) return head;
    const size_t length = std::stoul(head.substr(at + 16));
    while (got_.size() < length)
      if (!receive()) break;
    return head + take(std::min(length, got_.size()));
  }
  // Whether the server closed or reset the connection, and sent nothing before.
  bool is_closed() { return read_all().empty(); }

 private:
  std::string take(size_t n) {
    std::string out = got_.substr(0, n);
    got_.erase(0, n);
    return out;
  }
  bool receive() {
    pollfd p{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&p, 1, kPatience) <= 0) {
      ADD_FAILURE() << "nothing came; so far: " << got_.substr(0, 200);
      return false;
    }
    char bytes[65536];
    const ssize_t n = ::recv(fd_, bytes, sizeof bytes, 0);
    if (n <= 0) return false;
    got_.append(bytes, static_cast<size_t>(n));
    return true;
  }

  int fd_;
  std::string got_;
};

inline int status_of(const std::string& answer) { return answer.size() > 12 ? std::atoi(answer.c_str() + 9) : 0; }
inline std::string body_of(const std::string& answer) {
  const size_t at = answer.find("\r\n\r\n");
  return at == std::string::npos ? "" : answer.substr(at + 4);
}

inline std::string get(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}
inline std::string post(std::string_view path, std::string_view body) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

// Paths: /hold keeps the exchange for the test; /drop drops it; /throw throws; /stream sends three events and ends,
// /cut three and cuts; others are answered with "METHOD path query body".
class HttpFixture : public testing::Test {
 protected:
  void TearDown() override { server.reset(); }

  void start() {
    options.log = [this](std::string_view line) {
      const std::lock_guard lock(mutex);
      log += std::string(line) + "\n";
    };
    server = std::make_unique<HttpServer>(options,
                                          [this](std::shared_ptr<Exchange> exchange) { handle(std::move(exchange)); });
    server->start();
  }

  void handle(std::shared_ptr<Exchange> exchange) {
    const HttpRequest& request = exchange->request();
    ++handled;
    if (request.path == "/drop") return;
    if (request.path == "/throw") throw std::runtime_error("broken");
    if (request.path == "/hold") return hold(std::move(exchange));
    if (request.path == "/stream" || request.path == "/cut") {
      exchange->begin_events();
      for (const char* data : {"one", "two", "three"}) exchange->event(data);
      return request.path == "/cut" ? exchange->cut_events() : exchange->end_events();
    }
    exchange->reply({.content_type = "text/plain",
                     .body = request.method + " " + request.path + " " + request.query + " " + request.body});
  }

  void hold(std::shared_ptr<Exchange> exchange) {
    exchange->on_gone([this] { ++gone; });
    const std::lock_guard lock(mutex);
    held.push_back(std::move(exchange));
    changed.notify_all();
  }
  // The next exchange that was held.
  std::shared_ptr<Exchange> take_held() {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::milliseconds(kPatience), [this] { return !held.empty(); }));
    if (held.empty()) return nullptr;
    auto exchange = std::move(held.front());
    held.erase(held.begin());
    return exchange;
  }
  std::string logged() {
    const std::lock_guard lock(mutex);
    return log;
  }
  static bool eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < kPatience; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  RawClient client(int receive_buffer = 0) { return RawClient(server->port(), receive_buffer); }
  // What one connection gets for these bytes.
  std::string answer_to(const std::string& bytes) {
    RawClient c = client();
    c.send(bytes);
    return c.read_answer();
  }
  // The server still answers others.
  void expect_alive() { EXPECT_EQ(body_of(answer_to(get("/alive"))), "GET /alive  "); }

  HttpOptions options;
  std::unique_ptr<HttpServer> server;
  std::atomic<int> handled = 0, gone = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::shared_ptr<Exchange>> held;
  std::string log;
};

}  // namespace stet::test
