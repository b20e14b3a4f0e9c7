#include "lab/ledger/running.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace stet {
namespace {

namespace fs = std::filesystem;

void write_whole(int fd, const std::string& text, const std::string& path) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(Code::kResource, "{} cannot be written: {}", path, std::strerror(errno));
    done += static_cast<size_t>(n);
  }
}

// Nothing where the file is not a mark that can be read.
bool read_mark(const fs::path& path, RunningProcess& found) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return false;
  found.name = path.filename().string();
  found.pid = json.value("pid", int64_t{0});
  found.verb = json.value("verb", "");
  found.since = json.value("since", "");
  found.object_json = json.value("details", nlohmann::json::object()).dump();
  return true;
}

}  // namespace

std::string utc_now() {
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

std::string running_folder(const std::string& ledger_path) {
  return (fs::path(ledger_path).parent_path() / "running").string();
}

RunningMark::RunningMark(const std::string& folder, std::string_view verb, std::string_view object_json) {
  static std::atomic<unsigned> counter{0};
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(Code::kResource, "the folder {} cannot be made: {}", folder, error.message());
  name_ = fmt::format("{}-{}.json", getpid(), counter.fetch_add(1));
  path_ = (fs::path(folder) / name_).string();
  const std::string hidden = (fs::path(folder) / ("." + name_)).string();
  fd_ = open(hidden.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd_ < 0) fail(Code::kResource, "{} cannot be made: {}", hidden, std::strerror(errno));
  const nlohmann::json mark = {{"pid", getpid()},
                               {"verb", verb},
                               {"since", utc_now()},
                               {"details", nlohmann::json::parse(object_json, nullptr, false)}};
  write_whole(fd_, mark.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n", hidden);
  // Locked before it gets the name under which others look for it.
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0 || rename(hidden.c_str(), path_.c_str()) != 0) {
    const int why = errno;
    close(fd_);
    unlink(hidden.c_str());
    fail(Code::kResource, "{} cannot be locked: {}", path_, std::strerror(why));
  }
}

RunningMark::~RunningMark() {
  unlink(path_.c_str());
  close(fd_);
}

std::vector<RunningProcess> running_processes(const std::string& folder) {
  std::vector<RunningProcess> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') || !name.ends_with(".json")) continue;
    const int fd = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    RunningProcess process;
    if (flock(fd, LOCK_SH | LOCK_NB) == 0)
      unlink(entry.path().c_str());  // nobody holds it: its process died
    else if (errno == EWOULDBLOCK && read_mark(entry.path(), process))
      found.push_back(std::move(process));
    close(fd);
  }
  return found;
}

}  // namespace stet
