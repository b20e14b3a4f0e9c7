#include "lab/packet/signature.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "lab/packet/manifest.h"

namespace stet {
namespace {

struct Answer {
  int code = -1;
  std::string text;  // standard output and error
};

constexpr int kNotFound = 127;

// Runs a program with a file as its standard input, and nothing of this process's environment.
Answer run_program(std::vector<std::string> words, const std::string& input) {
  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) fail(Code::kResource, "no pipe for {}: {}", words[0], std::strerror(errno));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input.c_str(), O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDERR_FILENO);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  char* no_environment[] = {nullptr};
  pid_t child = -1;
  const int failed = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), no_environment);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_ends[1]);
  Answer answer;
  char piece[4096];
  for (ssize_t n = 0;
       failed == 0 && ((n = ::read(pipe_ends[0], piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR));)
    if (n > 0) answer.text.append(piece, static_cast<size_t>(n));
  ::close(pipe_ends[0]);
  if (failed != 0) return {kNotFound, std::strerror(failed)};
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  answer.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return answer;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

bool file_exists(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0;
}

SignatureCheck check_one(const std::string& folder, std::string_view name, const std::string& signers) {
  SignatureCheck check;
  check.file = name;
  const std::string file = folder + "/" + check.file, signature = file + ".sig";
  if (!file_exists(signature)) return check;
  if (signers.empty()) {
    check.state = SignatureCheck::State::not_checked;
    return check;
  }
  check.state = SignatureCheck::State::bad;
  const Answer who = run_program({"ssh-keygen", "-Y", "find-principals", "-s", signature, "-f", signers}, "/dev/null");
  if (who.code == kNotFound)
    fail(Code::kResource, "signatures are checked with ssh-keygen (OpenSSH 8.2 or later), which does not run here: {}",
         who.text);
  if (who.code != 0) {
    check.why = fmt::format("none of the allowed signers made it ({})", first_line(who.text));
    return check;
  }
  check.signer = first_line(who.text);
  const Answer verdict = run_program(
      {"ssh-keygen", "-Y", "verify", "-f", signers, "-I", check.signer, "-n", kSignatureNamespace, "-s", signature},
      file);
  if (verdict.code == 0)
    check.state = SignatureCheck::State::good;
  else
    check.why = fmt::format("it is not a signature of this file by {} ({})", check.signer, first_line(verdict.text));
  return check;
}

}  // namespace

std::vector<SignatureCheck> check_signatures(const std::string& packet_path, const std::string& signers) {
  if (!signers.empty() && !file_exists(signers)) fail(Code::kInput, "{}: no such file of allowed signers", signers);
  return {check_one(packet_path, kManifestFile, signers), check_one(packet_path, kPlanFile, signers)};
}

}  // namespace stet
