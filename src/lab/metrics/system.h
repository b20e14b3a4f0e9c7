// What the machine did meanwhile: suspended, throttled, swapped, gave its processors to others.
#pragma once

#include <string>
#include <vector>

#include "lab/record/events.h"

namespace stet {

// Reads the counters of this machine below `root` ("" outside tests):
// - suspended_ns: the boot-time clock less the monotonic clock;
// - cpu_ticks, steal_ticks: /proc/stat, all processors together, idle time included;
// - swapped_pages: pswpin and pswpout of /proc/vmstat;
// - throttle_events: thermal throttling of every core and package, and periods in which the CPU quota of the control
// group stopped
//   this process.
// What is not there stays absent. client_ns: the monotonic clock.
SystemSample sample_system(const std::string& root = "");

int64_t monotonic_ns();

struct SystemChanges {
  std::vector<std::string> faults;       // "suspend: ...", "throttling: ...", "swapping: ...", "steal: ..."
  std::vector<std::string> not_watched;  // the same names, where a counter is absent
};

// Suspended for 0.1 s or more; any throttling; any swapped page; more than 1 % of all processor time stolen (a single
// tick is what the counter resolves, and says nothing).
SystemChanges system_changes(const SystemSample& before, const SystemSample& after);

// The rule about stolen time alone, for the sums of a whole run.
std::string steal_fault(uint64_t cpu_ticks, uint64_t steal_ticks);

}  // namespace stet
