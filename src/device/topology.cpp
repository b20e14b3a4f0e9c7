#include "device/topology.h"

#include <fmt/format.h>
#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "device/cgroup.h"

namespace stet {
namespace {

// The affinity mask may be longer than cpu_set_t: the kernel says EINVAL until the buffer is long enough.
std::vector<int> affinity_mask() {
  for (int cpus = CPU_SETSIZE; cpus <= 1 << 20; cpus *= 2) {
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(cpus), [](cpu_set_t* s) { CPU_FREE(s); });
    if (set == nullptr) break;
    CPU_ZERO_S(bytes, set.get());
    if (sched_getaffinity(0, bytes, set.get()) != 0) {
      if (errno == EINVAL) continue;
      break;
    }
    std::vector<int> mask;
    for (int cpu = 0; cpu < cpus; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set.get())) mask.push_back(cpu);
    return mask;
  }
  return {0};
}

// Logical processor -> physical core, by hwloc; empty when hwloc cannot tell.
std::map<int, int> core_of_processor() {
  std::map<int, int> cores;
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return cores;
  // Only cores and their threads: reading caches, memory and devices would cost most of the time.
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(topology) == 0) {
    const int count = std::max(0, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE));
    for (int core = 0; core < count; ++core) {
      const hwloc_obj_t object = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, static_cast<unsigned>(core));
      int cpu = -1;
      while ((cpu = hwloc_bitmap_next(object->cpuset, cpu)) >= 0) cores[cpu] = core;
    }
  }
  hwloc_topology_destroy(topology);
  return cores;
}

// Version 2: "max 100000" or "150000 100000" (microseconds of time per period). Version 1: two files, a quota of -1 is
// none.
std::optional<double> quota_of(int version, const std::string& directory) {
  std::optional<uint64_t> quota, period;
  if (version == 2) {
    std::stringstream text(read_small_file(directory + "/cpu.max").value_or(""));
    std::string first, second;
    text >> first >> second;
    quota = whole_number(first);
    period = whole_number(second);
  } else {
    quota = whole_number(read_small_file(directory + "/cpu.cfs_quota_us").value_or(""));
    period = whole_number(read_small_file(directory + "/cpu.cfs_period_us").value_or(""));
  }
  if (!quota || !period || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace

std::optional<double> cgroup_cpu_quota(const std::string& root, std::string* source) {
  std::optional<double> tightest;
  for (const CgroupHierarchy& hierarchy : cgroup_hierarchies("cpu", root)) {
    for (const std::string& directory : hierarchy.directories) {
      const std::optional<double> quota = quota_of(hierarchy.version, directory);
      if (!quota || (tightest && *tightest <= *quota)) continue;
      tightest = quota;
      if (source != nullptr) *source = directory;
    }
  }
  return tightest;
}

std::vector<Processor> allowed_processors() {
  const std::map<int, int> cores = core_of_processor();
  std::vector<Processor> processors;
  for (int cpu : affinity_mask()) {
    const auto found = cores.find(cpu);
    processors.push_back({cpu, found != cores.end() ? found->second : -1 - cpu});
  }
  return processors;
}

std::vector<int> pin_order(const std::vector<Processor>& processors) {
  std::map<int, int> seen;  // threads of a core so far
  std::vector<std::pair<int, int>> ranked;
  for (const Processor& p : processors) ranked.push_back({seen[p.core]++, p.cpu});
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<int> order;
  for (const auto& [rank, cpu] : ranked) order.push_back(cpu);
  return order;
}

ThreadBudget thread_budget(const std::string& root) {
  ThreadBudget budget;
  const std::vector<Processor> processors = allowed_processors();
  std::set<int> cores;
  for (const Processor& p : processors) cores.insert(p.core);
  budget.allowed_cpus = static_cast<unsigned>(processors.size());
  budget.physical_cores = static_cast<unsigned>(cores.size());
  budget.quota = cgroup_cpu_quota(root, &budget.quota_source);
  budget.threads = std::min(budget.allowed_cpus, budget.physical_cores);
  // Rounded down: a thread more than the quota pays for stops all of them at the end of every period.
  if (budget.quota && *budget.quota < budget.threads) budget.threads = static_cast<unsigned>(*budget.quota);
  budget.threads = std::max(1u, budget.threads);
  return budget;
}

std::string ThreadBudget::explain() const {
  const auto plural = [](unsigned n, const char* noun) { return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s"); };
  const std::string limit = quota ? fmt::format("cgroup quota {:.2f} ({})", *quota, quota_source) : "no cgroup quota";
  return fmt::format("{}: {} allowed, {}, {}", plural(threads, "thread"), plural(allowed_cpus, "processor"),
                     plural(physical_cores, "physical core"), limit);
}

}  // namespace stet
