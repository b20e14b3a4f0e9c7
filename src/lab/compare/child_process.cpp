#include "lab/compare/child_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"

namespace stet {
namespace {

constexpr std::chrono::milliseconds kLook{20};  // between two looks at whether a child has ended
constexpr size_t kLastWords = 600;
constexpr int kNoProgram = 127;

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

// In the child, between fork and exec: only what is safe there. Writes errno to `failed` where exec does not happen.
[[noreturn]] void become(char* const* argv, const char* output, const char* log, int failed, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kNoProgram);
  constexpr int kNew = O_WRONLY | O_CREAT | O_TRUNC;
  const int in = open("/dev/null", O_RDONLY), out = open(output, kNew, 0600), err = open(log, kNew, 0600);
  if (in >= 0 && out >= 0 && err >= 0 && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(err, 2) >= 0) {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    for (int signal : {SIGINT, SIGTERM, SIGPIPE}) sigaction(signal, &action, nullptr);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execvp(argv[0], argv);
  }
  const int why = errno;
  (void)!write(failed, &why, sizeof why);
  _exit(kNoProgram);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& words, const std::string& out, const std::string& log)
    : name_(words.at(0)), out_(out), log_(log) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int failed[2];
  if (pipe2(failed, O_CLOEXEC) != 0) fail(Code::kResource, "no pipe for {}: {}", name_, std::strerror(errno));
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become(argv.data(), out_.c_str(), log_.c_str(), failed[1], parent);
  close(failed[1]);
  int why = 0;
  ssize_t n = 0;
  while ((n = read(failed[0], &why, sizeof why)) < 0 && errno == EINTR) {
  }
  close(failed[0]);
  if (pid_ < 0) fail(Code::kResource, "{} cannot be started: no process is left", name_);
  if (n == sizeof why) {
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
    fail(Code::kUsage, "{} cannot be started: {}", name_, std::strerror(why));
  }
}

ChildProcess::~ChildProcess() { end(0); }

std::optional<int> ChildProcess::exit_code() {
  if (code_ || pid_ < 0) return code_;
  // It is looked at and not taken away: until end() its number belongs to it, and so does the number of its group.
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_)
    code_ = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
  return code_;
}

int ChildProcess::end(double grace_seconds) {
  if (pid_ < 0) return code_.value_or(kNoProgram);
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(grace_seconds);
  if (grace_seconds > 0 && !exit_code()) kill(-pid_, SIGTERM);
  while (!exit_code() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(kLook);
  kill(-pid_, SIGKILL);  // what it started itself, too
  while (!exit_code()) std::this_thread::sleep_for(kLook);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
  return *code_;
}

int ChildProcess::wait(double seconds, const std::function<bool()>& stop) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!exit_code()) {
    if (stop && stop()) {
      end(0);
      fail(Code::kCancelled, "interrupted while {} ran", name_);
    }
    if (std::chrono::steady_clock::now() > until) {
      end(0);
      fail(Code::kResource, "{} was ended after {} s; its last words: {}", name_, seconds, last_words());
    }
    std::this_thread::sleep_for(kLook);
  }
  return end(0);
}

std::string ChildProcess::output() const { return content(out_); }

std::string ChildProcess::last_words() const {
  std::string text = content(log_);
  if (text.empty()) text = content(out_);
  return text.size() > kLastWords ? "..." + text.substr(text.size() - kLastWords) : text;
}

unsigned free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool bound = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  const int why = errno;
  if (fd >= 0) close(fd);
  if (!bound) fail(Code::kResource, "no port of 127.0.0.1 is free: {}", std::strerror(why));
  return ntohs(address.sin_port);
}

TemporaryFolder::TemporaryFolder() {
  path_ = (std::filesystem::temp_directory_path() / "stet-XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr)
    fail(Code::kResource, "no temporary folder {}: {}", path_, std::strerror(errno));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace stet
