// Sockets that wait for clients.
#pragma once

#include <cstdint>
#include <string>

namespace stet::http {

// An open, listening, non-blocking socket; closed with it. A socket in the file system is removed with it too.
class Listener {
 public:
  // host: a name or an address. port 0: any free one. Throws Error(kUsage) for a host that does not exist,
  // Error(kResource) when the port is in use or may not be used.
  static Listener tcp(const std::string& host, uint16_t port);
  // Mode 0600. A socket that a dead process left there is replaced. Throws Error(kResource) when a process listens
  // there, when something else is there, or when the folder cannot be written to; Error(kUsage) for a path that is too
  // long.
  static Listener unix_socket(const std::string& path);

  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  int fd() const { return fd_; }
  // "127.0.0.1", "[::1]"; empty: a socket in the file system.
  const std::string& address() const { return address_; }
  uint16_t port() const { return port_; }
  // Takes no more clients, and removes the socket from the file system if it is still this one.
  void close();

 private:
  Listener() = default;

  int fd_ = -1;
  std::string address_, path_;
  uint16_t port_ = 0;
  uint64_t device_ = 0, inode_ = 0;
};

// What a connected socket says of its two ends.
struct Ends {
  std::string client;  // "127.0.0.1:51002", "unix"
  std::string local;   // canonical address that it came to; empty for a socket in the file system
};
Ends ends_of(int fd);

}  // namespace stet::http
