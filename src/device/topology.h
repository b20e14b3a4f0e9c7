// How many threads this process may use to good purpose, and on which processors.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace stet {

// What limits the number of threads.
struct ThreadBudget {
  unsigned threads = 1;         // the smallest of the three below, at least 1
  unsigned allowed_cpus = 1;    // logical processors in the affinity mask
  unsigned physical_cores = 1;  // cores among those: hyperthreads of a core share its vector units and its caches
  std::optional<double> quota;  // processors' worth of time that the control groups grant; none: no limit
  std::string quota_source;     // the directory of the tightest quota

  // One line for people: "2 threads: 4 processors allowed, 2 physical cores, no cgroup quota".
  std::string explain() const;
};

// Reads the affinity mask of the calling thread, the cores through hwloc, and the cgroup quota below `root` ("" outside
// tests).
ThreadBudget thread_budget(const std::string& root = "");

// The tightest CPU quota of this process's control groups and all groups above, in processors; sets *source to its
// directory.
std::optional<double> cgroup_cpu_quota(const std::string& root, std::string* source = nullptr);

// A logical processor and the physical core that it is a thread of.
struct Processor {
  int cpu;
  int core;
};

// The processors of the calling thread's affinity mask. Where the cores are not known, each processor counts as a core.
std::vector<Processor> allowed_processors();

// The order in which workers are pinned: one processor of every core first, then the second ones.
std::vector<int> pin_order(const std::vector<Processor>& processors);

}  // namespace stet
