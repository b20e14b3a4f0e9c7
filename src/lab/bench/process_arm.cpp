// An engine in a process of its own, and the two ends of the pipes between them.
//
// Lines of JSON. To the child: the options, then one request after the other. From it: {"identity": ...}, then for each
// request what the log of events holds of it (event_lines.h); {"error": {"code", "message"}} for what ends it.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "engine/identity.h"
#include "lab/bench/arm.h"
#include "lab/metrics/system.h"
#include "lab/record/event_lines.h"
#include "base/strict_json.h"

namespace stet {
namespace {

constexpr int kChildPollMs = 100;
constexpr std::string_view kEndLine = R"({"type":"end")";

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

void open_pipe(Descriptor& read_end, Descriptor& write_end) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    fail(Code::kResource, "no file descriptor is left for a pipe; raise the limit (ulimit -n)");
  read_end.reset(ends[0]);
  write_end.reset(ends[1]);
}

void write_line(int fd, std::string line) {
  line += '\n';
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t n = ::write(fd, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(Code::kResource, "the other end of a pipe is gone");
    rest.remove_prefix(static_cast<size_t>(n));
  }
}

// Lines from a descriptor, waiting with an eye on `stop`.
class LineReader {
 public:
  LineReader(int fd, std::function<bool()> stop) : fd_(fd), stop_(std::move(stop)) {}

  // Nothing at the end of the stream. Throws Error(kCancelled) when stop says so.
  std::optional<std::string> next() {
    for (;;) {
      const size_t end = pending_.find('\n', searched_);
      if (end != std::string::npos) {
        std::string line = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        searched_ = 0;
        return line;
      }
      searched_ = pending_.size();
      if (!read_more()) return std::nullopt;
    }
  }

 private:
  bool read_more() {
    for (;;) {
      if (stop_ && stop_()) fail(Code::kCancelled, "interrupted");
      pollfd p = {fd_, POLLIN, 0};
      if (::poll(&p, 1, kChildPollMs) <= 0) continue;
      char bytes[1 << 16];
      const ssize_t n = ::read(fd_, bytes, sizeof bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      pending_.append(bytes, static_cast<size_t>(n));
      return true;
    }
  }

  int fd_;
  std::function<bool()> stop_;
  std::string pending_;
  size_t searched_ = 0;
};

// The lines of one request as they stand in a log, without the start that they belong to.
RequestRecord record_of(const std::string& lines, const StartRecord& start) {
  EventLog log = read_events(plan_line(std::string(64, '0')) + start_line(start) + lines);
  STET_CHECK(log.requests.size() == 1);
  return std::move(log.requests.front());
}

class ProcessArm : public Arm {
 public:
  ProcessArm(const std::string& program, const Options& options, std::function<bool()> stop) : stop_(std::move(stop)) {
    Descriptor child_in, child_out;
    open_pipe(child_in, to_);
    open_pipe(from_, child_out);
    pid_ = ::fork();
    if (pid_ < 0) fail(Code::kResource, "no process can be started");
    if (pid_ == 0) become_child(program, child_in.get(), child_out.get());
    child_in.reset();
    child_out.reset();
    lines_ = std::make_unique<LineReader>(from_.get(), stop_);
    try {
      write_line(to_.get(), options_json(options));
      const Json hello = parse_json(next(), "what the engine's process says");
      start_.identity_json = StrictObject(hello, "what the engine's process says").object("identity");
    } catch (...) {
      end();
      throw;
    }
    start_.arm = "child";
  }
  ~ProcessArm() override { end(); }

  bool fresh() const override { return true; }
  const std::string& identity_json() const override { return start_.identity_json; }

  RequestRecord ask(const PlannedRequest& request) override {
    write_line(to_.get(), planned_request_json(request));
    std::string lines;
    for (;;) {
      const std::string line = next();
      lines += line + "\n";
      if (line.starts_with(kEndLine)) return record_of(lines, start_);
    }
  }

 private:
  [[noreturn]] static void become_child(const std::string& program, int in, int out) {
    // It ends with its parent, and a Ctrl-C is the parent's to answer.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setpgid(0, 0);
    ::dup2(in, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    const char* const words[] = {program.c_str(), "bench", "--engine-child", nullptr};
    ::execv(program.c_str(), const_cast<char* const*>(words));
    ::_exit(127);
  }

  std::string next() {
    std::optional<std::string> line = lines_->next();
    if (!line) fail(Code::kInternal, "the engine's process {}", how_it_ended());
    if (line->starts_with(R"({"error":)")) {
      const Json error = parse_json(*line, "the engine's process").at("error");
      throw Error(static_cast<Code>(error.at("code").get<int>()), error.at("message").get<std::string>());
    }
    return *std::move(line);
  }

  std::string how_it_ended() {
    int status = 0;
    if (pid_ <= 0 || ::waitpid(pid_, &status, 0) != pid_) return "is gone";
    pid_ = -1;
    if (WIFSIGNALED(status))
      return fmt::format("was ended by signal {}{}", WTERMSIG(status),
                         WTERMSIG(status) == SIGKILL ? " (out of memory?)" : "");
    return fmt::format("left with exit code {} without an answer", WEXITSTATUS(status));
  }

  // At the end of its requests it leaves by itself; one that still works is not waited for.
  void end() {
    to_.reset();
    if (pid_ <= 0) return;
    for (int waited_ms = 0; waited_ms < 2000; waited_ms += 10) {
      if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = -1;
        return;
      }
      if (stop_ && stop_()) break;
      ::usleep(10000);
    }
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

  std::function<bool()> stop_;
  Descriptor to_, from_;
  pid_t pid_ = -1;
  std::unique_ptr<LineReader> lines_;
  StartRecord start_;
};

class EndpointArm : public Arm {
 public:
  EndpointArm(HttpClient& client, const Connected& connected) : client_(client), connected_(connected) {}
  bool fresh() const override { return false; }
  const std::string& identity_json() const override { return connected_.server.json; }
  RequestRecord ask(const PlannedRequest& request) override { return ask_server(client_, connected_, request); }

 private:
  HttpClient& client_;
  const Connected& connected_;
};

void answer_requests(LineReader& lines, int out, const std::function<bool()>& stop) {
  const std::optional<std::string> options = lines.next();
  if (!options) return;
  Engine engine(parse_options(*options));
  write_line(out, dump_line({{"identity", parse_json(engine_identity(engine, true), "the identity")}}));
  uint32_t index = 0;
  while (const std::optional<std::string> line = lines.next()) {
    RequestRecord record = ask_engine(engine, parse_planned_request(*line, "a request"), stop);
    record.arm = "child";
    record.index = index++;
    record.id = fmt::format("{}", record.index);
    std::string text = request_lines(record);
    text.pop_back();
    write_line(out, std::move(text));
  }
}

}  // namespace

std::unique_ptr<Arm> endpoint_arm(HttpClient& client, const Connected& connected) {
  return std::make_unique<EndpointArm>(client, connected);
}

std::unique_ptr<Arm> process_arm(const std::string& program, const Options& options, std::function<bool()> stop) {
  return std::make_unique<ProcessArm>(program, options, std::move(stop));
}

void engine_child(int in, int out, const std::function<bool()>& stop) {
  LineReader lines(in, stop);
  const auto report = [&](Code code, const std::string& message) {
    write_line(out, dump_line({{"error", {{"code", static_cast<int>(code)}, {"message", message}}}}));
  };
  try {
    answer_requests(lines, out, stop);
  } catch (const Error& e) {
    report(e.code(), e.what());
  } catch (const std::bad_alloc&) {
    report(Code::kResource, "out of memory; choose a smaller --ctx or close other programs");
  }
}

std::string this_program() {
  char path[4096];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  if (n <= 0 || n == sizeof path) fail(Code::kResource, "this program cannot be found again: /proc is not mounted");
  return std::string(path, static_cast<size_t>(n));
}

}  // namespace stet
