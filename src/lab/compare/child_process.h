// A program that a comparison starts, watches and ends.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stet {

class ChildProcess {
 public:
  // Starts words[0], looked up in PATH unless it holds a slash, in a process group of its own that ends with this
  // process. Standard output goes to the file `out`, standard error to the file `log`. Throws Error(kUsage) where there
  // is no such program.
  ChildProcess(const std::vector<std::string>& words, const std::string& out, const std::string& log);
  ~ChildProcess();  // end(0)
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Its exit code, 128 + the signal that ended it, or nothing while it runs.
  std::optional<int> exit_code();
  // SIGTERM, after `grace_seconds` SIGKILL to its group; returns when it is gone.
  int end(double grace_seconds);
  // Waits for its end. Throws Error(kCancelled) when stop says so, Error(kResource) after `seconds`; it is ended then.
  int wait(double seconds, const std::function<bool()>& stop);
  // What it wrote to standard output.
  std::string output() const;
  // The end of what it wrote to standard error, or else to standard output, for messages.
  std::string last_words() const;

 private:
  std::string name_, out_, log_;
  pid_t pid_ = -1;
  std::optional<int> code_;
};

// A TCP port of 127.0.0.1 that was free a moment ago.
unsigned free_port();

// A folder of its own in the system's place for temporary files; removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace stet
