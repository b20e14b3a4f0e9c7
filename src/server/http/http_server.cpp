#include "server/http/http_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <thread>
#include <vector>

#include "base/error.h"
#include "server/http/connection.h"

namespace stet {
namespace {

using namespace http;

constexpr std::chrono::milliseconds kTick{50}, kIdleTick{250};

void prepare_socket(int fd, const HttpOptions& options) {
  const int on = 1;
  const auto timeout = static_cast<unsigned>(options.stall_timeout.count());
  // Both fail on a socket in the file system, which needs neither. The second one ends connections to machines that
  // vanished.
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
}

}  // namespace

struct HttpServer::Impl {
  Impl(HttpOptions o, HttpHandler handler)
      : shared(std::make_shared<Shared>(std::move(o), std::move(handler))),
        options(shared->options),
        timer(shared->io) {}
  ~Impl() {
    if (door) door->release();  // the listener closes it
  }

  void check_address() const;
  void accept();
  void take_clients();
  void admit(int fd);
  void sweep() {
    std::erase_if(connections, [](const auto& connection) { return connection->closed(); });
  }
  void tick();
  void tick_later();
  void retire();
  bool done() const { return shared->stopping && connections.empty(); }

  const std::shared_ptr<Shared> shared;
  const HttpOptions& options;
  std::optional<Listener> listener;
  std::optional<boost::asio::posix::stream_descriptor> door;
  boost::asio::steady_timer timer;
  bool ticking = false, accepting = false;
  std::vector<std::shared_ptr<Connection>> connections;
  Connection::Clock::time_point cut_at = Connection::Clock::time_point::max();
  std::string url;
  uint16_t port = 0;
  std::thread thread;
};

void HttpServer::Impl::check_address() const {
  if (!options.unix_path.empty() || is_loopback(listener->address()) || !options.guard.keys.empty()) return;
  if (!options.no_auth)
    fail(Code::kUsage,
         "others can reach {} and there is no key: give --api-key-file, listen on 127.0.0.1, or say --no-auth to let "
         "everybody in",
         listener->address());
  if (options.log)
    options.log(fmt::format("warning: everybody who reaches {}:{} can use this server (--no-auth)", listener->address(),
                            listener->port()));
}

void HttpServer::Impl::accept() {
  if (accepting || !door) return;
  accepting = true;
  door->async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
    accepting = false;
    if (!error && door) take_clients();
  });
}

void HttpServer::Impl::take_clients() {
  for (;;) {
    const int fd = ::accept4(listener->fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      admit(fd);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return accept();
    } else if (errno != ECONNABORTED && errno != EINTR) {
      return tick_later();  // no descriptors or memory: the client that waits would wake this at once
    }
  }
}

void HttpServer::Impl::admit(int fd) {
  prepare_socket(fd, options);
  if (connections.size() >= options.max_connections) sweep();
  if (connections.size() >= options.max_connections) {
    const Refusal why{503, fmt::format("{} connections are open; no more are taken", connections.size()), "overloaded"};
    const std::string bytes = reply_bytes(error_reply(why), {.keep_alive = false});
    (void)!::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::close(fd);
    return;
  }
  connections.push_back(std::make_shared<Connection>(shared, fd));
  connections.back()->start();
  tick_later();
}

// Only while there is something to watch: a server without clients sleeps.
void HttpServer::Impl::tick() {
  if (Connection::Clock::now() >= cut_at)
    for (const auto& connection : connections) connection->cut();
  for (const auto& connection : connections) connection->tick();
  sweep();
  accept();
  if (done()) shared->io.stop();
  if (!connections.empty()) tick_later();
}

void HttpServer::Impl::tick_later() {
  if (ticking) return;
  ticking = true;
  const bool idle = std::ranges::all_of(connections, [](const auto& connection) { return connection->idle(); });
  timer.expires_after(idle ? kIdleTick : kTick);
  timer.async_wait([this](const boost::system::error_code&) {
    ticking = false;
    tick();
  });
}

void HttpServer::Impl::retire() {
  shared->stopping = true;
  door->release();
  door.reset();
  listener->close();
  for (const auto& connection : connections) connection->retire();
  timer.cancel();
  tick();
}

HttpServer::HttpServer(HttpOptions options, HttpHandler handler)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(handler))) {}

HttpServer::~HttpServer() { stop(std::chrono::milliseconds(0)); }

void HttpServer::bind() {
  Impl& i = *impl_;
  STET_CHECK(!i.listener);
  const bool in_files = !i.options.unix_path.empty();
  i.listener.emplace(in_files ? Listener::unix_socket(i.options.unix_path)
                              : Listener::tcp(i.options.host, i.options.port));
  i.check_address();
  i.port = i.listener->port();
  const bool bare_ipv6 = i.options.host.find(':') != std::string::npos && !i.options.host.starts_with('[');
  const std::string host = bare_ipv6 ? "[" + i.options.host + "]" : i.options.host;
  i.url = in_files ? "unix:" + i.options.unix_path : fmt::format("http://{}:{}", host, i.port);
}

void HttpServer::start() {
  Impl& i = *impl_;
  if (!i.listener) bind();
  i.door.emplace(i.shared->io, i.listener->fd());
  i.accept();
  i.thread = std::thread([&i] {
    const auto work = boost::asio::make_work_guard(i.shared->io);
    i.shared->io.run();
  });
}

uint16_t HttpServer::port() const { return impl_->port; }
std::string HttpServer::url() const { return impl_->url; }

void HttpServer::stop(std::chrono::milliseconds grace) {
  Impl& i = *impl_;
  if (!i.thread.joinable()) return;
  boost::asio::post(i.shared->io, [&i, grace] {
    i.cut_at = Connection::Clock::now() + grace;
    i.retire();
  });
  i.thread.join();
  // What was still under way for closed connections: each handler left here would keep its connection, which keeps this queue. The guard
  // keeps the context from stopping before the last of them has run.
  const auto work = boost::asio::make_work_guard(i.shared->io);
  do i.shared->io.restart();
  while (i.shared->io.poll() > 0);
}

}  // namespace stet
