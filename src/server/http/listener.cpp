#include "server/http/listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "server/http/authority.h"

namespace stet::http {
namespace {

constexpr int kBacklog = SOMAXCONN;  // clients that wait while this thread has no processor

struct Place {
  std::string address;
  uint16_t port = 0;
};

Place place_of(const sockaddr_storage& socket, socklen_t length) {
  char host[NI_MAXHOST], service[NI_MAXSERV];
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&socket), length, host, sizeof host, service, sizeof service,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  return {canonical_address(host), static_cast<uint16_t>(std::stoul(service))};
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const std::string& host, uint16_t port) {
  std::string bare = host;
  if (bare.size() > 2 && bare.front() == '[' && bare.back() == ']') bare = bare.substr(1, bare.size() - 2);
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  const int error = ::getaddrinfo(bare.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) fail(Code::kUsage, "the host '{}' is unknown here: {} (--host)", host, ::gai_strerror(error));
  return {found, &::freeaddrinfo};
}

// A name may have addresses of both kinds; clients on this machine try IPv4 too.
const addrinfo* preferred(const addrinfo* list) {
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next)
    if (a->ai_family == AF_INET) return a;
  return list;
}

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path || path.find('\0') != std::string::npos)
    fail(Code::kUsage, "the socket path has {} bytes; 1 to {} are possible: '{}'", path.size(),
         sizeof address.sun_path - 1, path);
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Whoever starts next waits here until this one listens: of two at once, the second finds a live socket.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path) {
    std::string folder = std::filesystem::path(path).parent_path().string();
    if (folder.empty()) folder = ".";
    fd_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd_ < 0)
      fail(Code::kResource, "the folder of the socket, {}, cannot be opened: {}", folder, std::strerror(errno));
    while (::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~FolderLock() { ::close(fd_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};

void remove_stale(const std::string& path, const sockaddr_un& address) {
  struct stat file = {};
  if (::lstat(path.c_str(), &file) != 0) return;
  if (!S_ISSOCK(file.st_mode))
    fail(Code::kResource, "{} is there and is no socket; choose another path (--listen)", path);
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int result = ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  ::close(probe);
  if (result == 0 || error != ECONNREFUSED)
    fail(Code::kResource, "a process already listens at {}{}; stop it, or choose another path (--listen)", path,
         result == 0 ? "" : fmt::format(" ({})", std::strerror(error)));
  if (::unlink(path.c_str()) != 0)
    fail(Code::kResource, "the socket {} of a process that ended cannot be removed: {}", path, std::strerror(errno));
}

}  // namespace

Listener Listener::tcp(const std::string& host, uint16_t port) {
  const Addresses list = resolve(host, port);
  const addrinfo* address = preferred(list.get());
  Listener listener;
  listener.fd_ = ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener.fd_ < 0) fail(Code::kResource, "no socket for {}: {}", host, std::strerror(errno));
  const int on = 1, off = 0;
  ::setsockopt(listener.fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address->ai_family == AF_INET6) ::setsockopt(listener.fd_, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(listener.fd_, address->ai_addr, address->ai_addrlen) != 0 || ::listen(listener.fd_, kBacklog) != 0) {
    if (errno == EADDRINUSE)
      fail(Code::kResource,
           "port {} of {} is in use; stop what uses it, or choose another one (--port; 0 is any free one)", port, host);
    fail(Code::kResource, "cannot listen on port {} of {}: {} (--host, --port)", port, host, std::strerror(errno));
  }
  sockaddr_storage bound = {};
  socklen_t length = sizeof bound;
  ::getsockname(listener.fd_, reinterpret_cast<sockaddr*>(&bound), &length);
  const Place place = place_of(bound, length);
  listener.address_ = place.address;
  listener.port_ = place.port;
  return listener;
}

Listener Listener::unix_socket(const std::string& path) {
  const sockaddr_un address = unix_address(path);
  const FolderLock lock(path);
  remove_stale(path, address);
  Listener listener;
  listener.fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener.fd_ < 0) fail(Code::kResource, "no socket for {}: {}", path, std::strerror(errno));
  // The file gets the mode that the socket has before it is bound: it is never open to others, not even for a moment.
  ::fchmod(listener.fd_, 0600);
  if (::bind(listener.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    fail(Code::kResource, "cannot listen at {}: {} (--listen)", path, std::strerror(errno));
  struct stat file = {};
  if (::lstat(path.c_str(), &file) != 0 || (file.st_mode & 077) != 0 || ::listen(listener.fd_, kBacklog) != 0) {
    ::unlink(path.c_str());
    fail(Code::kResource, "cannot listen at {} so that only this user reaches it; choose another folder (--listen)",
         path);
  }
  listener.path_ = path;
  listener.device_ = file.st_dev;
  listener.inode_ = file.st_ino;
  return listener;
}

Listener::Listener(Listener&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      address_(std::move(other.address_)),
      path_(std::exchange(other.path_, "")),
      port_(other.port_),
      device_(other.device_),
      inode_(other.inode_) {}

Listener::~Listener() { close(); }

void Listener::close() {
  if (fd_ < 0) return;
  if (!path_.empty()) {
    struct stat file = {};
    if (::lstat(path_.c_str(), &file) == 0 && file.st_dev == device_ && file.st_ino == inode_) ::unlink(path_.c_str());
  }
  ::close(fd_);
  fd_ = -1;
}

Ends ends_of(int fd) {
  sockaddr_storage local = {}, remote = {};
  socklen_t local_length = sizeof local, remote_length = sizeof remote;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&local), &local_length);
  ::getpeername(fd, reinterpret_cast<sockaddr*>(&remote), &remote_length);
  if (local.ss_family == AF_UNIX) return {"unix", ""};
  const Place client = place_of(remote, remote_length);
  return {fmt::format("{}:{}", client.address, client.port), place_of(local, local_length).address};
}

}  // namespace stet::http
