// A file tree in a temporary directory that stands for "/" in tests.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace stet {

class FakeRoot {
 public:
  FakeRoot() {
    std::string pattern = (std::filesystem::temp_directory_path() / "stet-root-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~FakeRoot() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  const std::string& path() const { return path_; }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + path).parent_path());
    std::ofstream(path_ + path) << text;
  }
  // A version 2 hierarchy at /sys/fs/cgroup whose mounted top is `top`.
  void mount_v2(const std::string& top) const {
    write("/proc/self/mountinfo", "26 23 0:24 " + top + " /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
    std::filesystem::create_directories(path_ + "/sys/fs/cgroup");
  }
  void group_v2(const std::string& group) const {
    group_v2_without_directory(group);
    std::filesystem::create_directories(path_ + "/sys/fs/cgroup" + group);
  }
  void group_v2_without_directory(const std::string& group) const { write("/proc/self/cgroup", "0::" + group + "\n"); }

 private:
  std::string path_;
};

}  // namespace stet
