// A server for tests that answers every connection as it is told to, byte by byte.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

namespace stet {

class Loopback {
 public:
  // Told the whole request; what it returns is sent, then the connection is closed. Pieces are sent one after the
  // other, each in a write of its own.
  using Script = std::function<std::vector<std::string>(const std::string& request)>;

  explicit Loopback(Script script) : script_(std::move(script)) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(fd_, 16) != 0 ||
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      fail(Code::kResource, "the test's server cannot listen");
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Loopback() {
    stopping_ = true;
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;

  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  // Waits for a client that closes its side while the server still talks.
  bool saw_client_leave() const { return left_; }

  // A script that never answers, or stops in the middle, holds the connection open until the client leaves.
  static constexpr const char* kHold = "\x01hold";

 private:
  void serve() {
    while (!stopping_) {
      const int client = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) continue;
      answer(client);
      ::close(client);
    }
  }

  static std::string read_request(int fd) {
    std::string text;
    char bytes[4096];
    for (;;) {
      const size_t head = text.find("\r\n\r\n");
      if (head != std::string::npos) {
        const size_t at = text.find("Content-Length: ");
        const size_t length = at < head ? std::stoul(text.substr(at + 16)) : 0;
        if (text.size() >= head + 4 + length) return text;
      }
      const ssize_t n = ::recv(fd, bytes, sizeof bytes, 0);
      if (n <= 0) return text;
      text.append(bytes, static_cast<size_t>(n));
    }
  }

  void answer(int client) {
    const std::string request = read_request(client);
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    for (const std::string& piece : script_(request)) {
      if (piece == kHold) {
        char byte;
        while (!stopping_ && ::recv(client, &byte, 1, 0) > 0) {
        }
        left_ = true;
        return;
      }
      if (::send(client, piece.data(), piece.size(), MSG_NOSIGNAL) < 0) {
        left_ = true;
        return;
      }
    }
    // Read what the client still sends, so that closing does not destroy what it has not read yet.
    ::shutdown(client, SHUT_WR);
    char byte;
    while (!stopping_ && ::recv(client, &byte, 1, 0) > 0) {
    }
  }

  Script script_;
  int fd_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_{false}, left_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace stet
