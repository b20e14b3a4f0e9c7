#include "lab/metrics/system.h"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <sstream>

#include "device/cgroup.h"

namespace stet {
namespace {

constexpr int64_t kNanoseconds = 1'000'000'000;
constexpr int64_t kSuspendedNs = 100'000'000;
constexpr int kClockTries = 5;

int64_t clock_ns(clockid_t clock) {
  timespec t = {};
  ::clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * kNanoseconds + t.tv_nsec;
}

// Two clocks cannot be read at once; of several tries the one with the least time between counts.
int64_t suspended_ns() {
  int64_t best = 0, least = INT64_MAX;
  for (int i = 0; i < kClockTries; ++i) {
    const int64_t before = clock_ns(CLOCK_MONOTONIC), boot = clock_ns(CLOCK_BOOTTIME),
                  after = clock_ns(CLOCK_MONOTONIC);
    if (after - before >= least) continue;
    least = after - before;
    best = boot - before - (after - before) / 2;
  }
  return std::max<int64_t>(best, 0);
}

// "cpu  user nice system idle iowait irq softirq steal guest guest_nice"; guest time is part of user time already.
void read_stat(const std::string& root, SystemSample& sample) {
  const std::optional<std::string> text = read_small_file(root + "/proc/stat");
  if (!text || !text->starts_with("cpu ")) return;
  std::istringstream line(text->substr(4, text->find('\n') - 4));
  uint64_t ticks = 0, value = 0, steal = 0;
  int fields = 0;
  for (; fields < 8 && line >> value; ++fields) {
    ticks += value;
    steal = value;
  }
  if (fields < 8) return;
  sample.cpu_ticks = ticks;
  sample.steal_ticks = steal;
}

void read_vmstat(const std::string& root, SystemSample& sample) {
  const std::optional<std::string> text = read_small_file(root + "/proc/vmstat");
  if (!text) return;
  const std::optional<uint64_t> in = number_after(*text, "pswpin"), out = number_after(*text, "pswpout");
  if (in && out) sample.swapped_pages = *in + *out;
}

void add_count(const std::string& path, std::optional<uint64_t>& sum) {
  std::optional<std::string> text = read_small_file(path);
  if (!text) return;
  while (text->ends_with('\n')) text->pop_back();
  if (const std::optional<uint64_t> value = whole_number(*text)) sum = sum.value_or(0) + *value;
}

void read_throttling(const std::string& root, SystemSample& sample) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/sys/devices/system/cpu", error)) {
    const std::string folder = entry.path().string() + "/thermal_throttle/";
    add_count(folder + "core_throttle_count", sample.throttle_events);
    add_count(folder + "package_throttle_count", sample.throttle_events);
  }
  for (const CgroupHierarchy& hierarchy : cgroup_hierarchies("cpu", root))
    for (const std::string& directory : hierarchy.directories) {
      const std::optional<std::string> text = read_small_file(directory + "/cpu.stat");
      if (!text) continue;
      if (const std::optional<uint64_t> periods = number_after(*text, "nr_throttled"))
        sample.throttle_events = sample.throttle_events.value_or(0) + *periods;
    }
}

// How far a counter rose; nothing where it is absent or was set back.
std::optional<uint64_t> rise(const std::optional<uint64_t>& before, const std::optional<uint64_t>& after) {
  if (!before || !after || *after < *before) return std::nullopt;
  return *after - *before;
}

}  // namespace

int64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }

SystemSample sample_system(const std::string& root) {
  SystemSample sample;
  sample.suspended_ns = suspended_ns();
  read_stat(root, sample);
  read_vmstat(root, sample);
  read_throttling(root, sample);
  sample.client_ns = monotonic_ns();
  return sample;
}

std::string steal_fault(uint64_t cpu_ticks, uint64_t steal_ticks) {
  if (steal_ticks <= 1 || 100 * (steal_ticks - 1) <= cpu_ticks) return "";
  return fmt::format("steal: {} of {} processor ticks went to other machines", steal_ticks, cpu_ticks);
}

SystemChanges system_changes(const SystemSample& before, const SystemSample& after) {
  SystemChanges changes;
  if (!before.suspended_ns || !after.suspended_ns) {
    changes.not_watched.emplace_back("suspend");
  } else if (const int64_t slept = *after.suspended_ns - *before.suspended_ns; slept >= kSuspendedNs) {
    changes.faults.push_back(fmt::format("suspend: the machine slept for {} ms", slept / 1'000'000));
  }
  const auto throttled = rise(before.throttle_events, after.throttle_events);
  if (!throttled) changes.not_watched.emplace_back("throttling");
  if (throttled.value_or(0) > 0) changes.faults.push_back(fmt::format("throttling: {} times", *throttled));
  const auto swapped = rise(before.swapped_pages, after.swapped_pages);
  if (!swapped) changes.not_watched.emplace_back("swapping");
  if (swapped.value_or(0) > 0) changes.faults.push_back(fmt::format("swapping: {} pages", *swapped));
  const auto ticks = rise(before.cpu_ticks, after.cpu_ticks), stolen = rise(before.steal_ticks, after.steal_ticks);
  if (!ticks || !stolen) {
    changes.not_watched.emplace_back("steal");
  } else if (std::string fault = steal_fault(*ticks, *stolen); !fault.empty()) {
    changes.faults.push_back(std::move(fault));
  }
  return changes;
}

}  // namespace stet
