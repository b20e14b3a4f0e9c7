// stet serve: the model behind HTTP, until a signal ends it.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/model_flags.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "lab/ledger/ledger.h"
#include "lab/ledger/running.h"
#include "server/api/api.h"
#include "server/http/http_server.h"

namespace stet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kMostServeSeconds = 7 * 24 * 3600, kMostQueued = 10'000, kMostBodyMib = 1024;
constexpr unsigned kManySignals = 100;                 // they are taken by wait_for, which knows what each one means
constexpr std::chrono::milliseconds kFlushTime{1000};  // for what is already written to reach its clients

struct ServeFlags {
  ModelFlags model;
  std::optional<std::string> host, listen, key_file;
  std::vector<std::string> allowed_hosts, allowed_origins;
  uint32_t queue = 16, deadline = 0, max_body_mib = 64, grace = 30;
  bool no_auth = false, log_prompts = false;

  void declare(Flags& flags) {
    model.declare_model(flags);
    model.declare_context(flags);
    flags.section("Address");
    flags.text("--host", "HOST", &host, "the address to listen on (127.0.0.1)");
    flags.count("--port", &port_, 0, 65535, "the port; 0: any free one (8080)");
    flags.text("--listen", "unix:PATH", &listen, "a socket in the file system instead, for this user only");
    flags.section("Who may ask");
    flags.text("--api-key-file", "FILE", &key_file, "a key is needed: one of those in the file, one a line");
    flags.toggle("--no-auth", &no_auth, "listen on an address that others reach, and ask them for no key");
    flags.texts("--allow-host", "NAME", &allowed_hosts, "a name that clients may call this server by (repeatable)");
    flags.texts("--allow-origin", "ORIGIN", &allowed_origins,
                "web pages from there may use it, e.g. http://localhost:3000 (repeatable)");
    flags.section("Limits");
    flags.count("--queue", &queue, 0, kMostQueued, "requests that may wait behind the active one (16)");
    flags.count("--deadline", &deadline, 1, kMostServeSeconds,
                "seconds from its arrival after which a request ends (none)");
    flags.count("--max-body", &max_body_mib, 1, kMostBodyMib, "MiB that the body of a request may have (64)");
    flags.count("--grace", &grace, 0, kMostServeSeconds, "seconds that a stop leaves to the requests under way (30)");
    model.declare_draft(flags);
    model.declare_machine(flags);
    flags.section("Output");
    flags.toggle("--log-prompts", &log_prompts, "write what is asked and answered into the log");
    flags.toggle("-q,--quiet", &model.quiet, "no line a request; the address, warnings and errors only");
    flags.footer(
        "The log goes to standard error. The first SIGINT or SIGTERM ends it within --grace seconds, the second at "
        "once.");
  }

  void check() const {
    model.check();
    if (listen && (host || port_ != kNoPort))
      fail(Code::kUsage, "--listen is a socket in the file system; --host and --port are none: choose one of the two");
    if (listen && !listen->starts_with("unix:"))
      fail(Code::kUsage, "--listen is '{}'; it is unix: and a path (for an address: --host and --port)", *listen);
    if (no_auth && key_file) fail(Code::kUsage, "--no-auth and --api-key-file contradict each other");
  }

  HttpOptions http() const;

 private:
  static constexpr uint32_t kNoPort = UINT32_MAX;
  static constexpr uint16_t kDefaultPort = 8080;
  uint32_t port_ = kNoPort;
};

HttpOptions ServeFlags::http() const {
  HttpOptions o;
  o.host = host.value_or("127.0.0.1");
  o.port = port_ == kNoPort ? kDefaultPort : static_cast<uint16_t>(port_);
  if (listen) o.unix_path = listen->substr(sizeof "unix:" - 1);
  o.no_auth = no_auth;
  o.max_body_bytes = uint64_t{max_body_mib} << 20;
  o.max_bodies_bytes = std::max(o.max_bodies_bytes, 2 * o.max_body_bytes);
  o.guard.is_unix = listen.has_value();
  for (const std::string& name : allowed_hosts) o.guard.hosts.push_back(http::allowed_host(name));
  for (const std::string& origin : allowed_origins) o.guard.origins.push_back(http::allowed_origin(origin));
  // Whoever listens on a name is called by it.
  const auto own = http::parse_authority(o.host);
  if (own && !http::is_wildcard(own->host)) o.guard.hosts.push_back(own->host);
  if (key_file) o.guard.keys = http::ApiKeys::from_file(*key_file);
  return o;
}

// What /v1/models calls it: never a path.
std::string model_id(const std::string& model) {
  const std::filesystem::path path(model);
  return path.extension() == ".gguf" ? path.stem().string() : path.filename().string();
}

// Something that another thread tells once, and that poll() can wait for.
class Flag {
 public:
  Flag() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_ < 0) fail(Code::kResource, "no file descriptor is left; raise the limit (ulimit -n)");
  }
  ~Flag() { ::close(fd_); }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;
  void raise() {
    raised_.store(true, std::memory_order_release);
    const uint64_t one = 1;
    (void)!::write(fd_, &one, sizeof one);
  }
  int fd() const { return fd_; }
  // What the thread that raised it wrote before can be read after this said true.
  bool raised() const { return raised_.load(std::memory_order_acquire); }

 private:
  const int fd_;
  std::atomic<bool> raised_ = false;
};

enum class Event : uint8_t { raised, interrupted, timeout };

// Waits for the flag (null: for none), a signal, or the time. A signal is taken.
Event wait_for(const Flag* flag, std::optional<Clock::time_point> until = std::nullopt) {
  for (;;) {
    // Looked at first: taking empties the pipe, also of a signal that comes just then.
    if (interrupts() > 0) {
      take_interrupts();
      return Event::interrupted;
    }
    int left = -1;
    if (until)
      left = static_cast<int>(
          std::max<int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now()).count()));
    pollfd fds[] = {{.fd = interrupt_fd(), .events = POLLIN, .revents = 0},
                    {.fd = flag != nullptr ? flag->fd() : -1, .events = POLLIN, .revents = 0}};
    if (::poll(fds, 2, left) == 0) return Event::timeout;
    if ((fds[1].revents & POLLIN) != 0 && flag->raised()) return Event::raised;
  }
}

// Everything that runs; what is declared last ends first.
class Service {
 public:
  explicit Service(const ServeFlags& flags)
      : quiet_(flags.model.quiet),
        progress_(quiet_),
        http_(http_options(flags), [this](std::shared_ptr<Exchange> exchange) { api_->handle(std::move(exchange)); }) {
    http_.bind();  // an address in use is known before a model is read
    LoopOptions options{.engine = flags.model.options, .queue_limit = flags.queue};
    options.engine.progress = [this](std::string_view phase, uint64_t done, uint64_t total) {
      progress_(phase, done, total);
    };
    options.on_loaded = [this](std::exception_ptr error) {
      progress_.clear();
      load_error_ = error;
      loaded.raise();
    };
    loop_ = std::make_unique<GenerationLoop>(std::move(options));
    ApiOptions api;
    api.model_id = model_id(flags.model.options.model);
    api.request_deadline = flags.deadline;
    api.log_prompts = flags.log_prompts;
    if (!quiet_) api.log = [](std::string_view line) { say(line); };
    api_ = std::make_unique<Api>(*loop_, std::move(api));
    http_.start();
    say("listening on " + http_.url());
    mark(flags);
  }

  // Once `loaded` was raised: says what was loaded, or throws why nothing was.
  void report_load() const {
    if (load_error_) std::rethrow_exception(load_error_);
    if (!quiet_) say(load_line(loop_->engine()->info()));
    say("ready");
  }

  // Answers what is under way within the time, unless a signal comes; cancels the rest.
  void stop(std::chrono::seconds grace) {
    loop_->close();
    say(fmt::format("stopping: what is under way has {} s; a second signal ends it at once", grace.count()));
    Flag ended;
    std::thread finisher([&] {
      loop_->stop(true);
      ended.raise();
    });
    if (wait_for(&ended, Clock::now() + grace) != Event::raised) {
      set_interrupt_limit(1);  // whatever hangs now, a further signal ends it
      loop_->stop(false);
    }
    finisher.join();
    http_.stop(kFlushTime);
    say("stopped");
  }

  Flag loaded;

 private:
  HttpOptions http_options(const ServeFlags& flags) const {
    HttpOptions options = flags.http();
    options.log = [quiet = quiet_](std::string_view line) {
      if (!quiet || line.starts_with("warning: ")) say(line);
    };
    return options;
  }

  // For `stet state`. A server that cannot write there serves all the same.
  void mark(const ServeFlags& flags) {
    const nlohmann::ordered_json details = {{"url", http_.url()}, {"model", model_id(flags.model.options.model)}};
    try {
      mark_.emplace(running_folder(Ledger::default_path()), "serve",
                    details.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    } catch (const Error& e) {
      say(fmt::format("warning: `stet state` will not show this server: {}", e.what()));
    }
  }

  std::optional<RunningMark> mark_;
  const bool quiet_;
  LoadProgress progress_;
  std::exception_ptr load_error_;
  std::unique_ptr<GenerationLoop> loop_;
  std::unique_ptr<Api> api_;
  HttpServer http_;
};

// Long buffers go back to the system when they are freed: by itself glibc raises this bound to the longest one that it
// ever freed, and from then on the heap keeps holes of that size.
void bound_heap() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

}  // namespace

int serve_main(std::span<const std::string> arguments) {
  ServeFlags flags;
  Flags parser("serve", "Serves a model over HTTP, as OpenAI's API has it, until a signal ends it.");
  flags.declare(parser);
  if (!parser.parse(arguments)) return kExitOk;
  flags.check();
  bound_heap();
  set_interrupt_limit(kManySignals);
  count_terminations();
  Service service(flags);
  if (wait_for(&service.loaded) == Event::raised) {
    service.report_load();
    wait_for(nullptr);
  }
  service.stop(std::chrono::seconds(flags.grace));
  return kExitOk;
}

}  // namespace stet
