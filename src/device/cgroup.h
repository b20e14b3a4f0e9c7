// Where the limits of this process's control groups are written, version 1 and 2. Shared by topology and memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stet {

// One hierarchy that limits a controller: its directories from this process's group up to the top one that is mounted.
struct CgroupHierarchy {
  int version = 2;
  std::vector<std::string> directories;  // at least one; all exist
};

// The hierarchies that hold a controller ("cpu", "memory") for this process. Reads /proc/self/cgroup and
// /proc/self/mountinfo below `root`, which is "" outside tests. Empty where no group is mounted.
std::vector<CgroupHierarchy> cgroup_hierarchies(const std::string& controller, const std::string& root);

// The content of a small file, such as those of /proc and of control groups; nothing when it cannot be read.
std::optional<std::string> read_small_file(const std::string& path);

// The number behind `key` at the start of a line ("inactive_file 4096", "MemAvailable:   12 kB"), without its unit.
std::optional<uint64_t> number_after(const std::string& text, const std::string& key);

// A text that is one non-negative number; nothing for "max", "-1" and damage.
std::optional<uint64_t> whole_number(const std::string& text);

}  // namespace stet
