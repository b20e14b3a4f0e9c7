#include "lab/metrics/system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/fake_root_test.h"
#include "lab/packet/packet_fixture_test.h"

namespace stet {
namespace {

TEST(System, CountersAreReadWhereTheyAre) {
  const FakeRoot root;
  root.write("/proc/stat", "cpu  100 10 50 800 5 0 15 20 7 1\ncpu0 1 2 3 4 5 6 7 8 9 10\n");
  root.write("/proc/vmstat", "pgpgin 5\npswpin 30\npswpout 12\n");
  root.write("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n");
  root.write("/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", "4\n");
  root.write("/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "5\n");
  const SystemSample s = sample_system(root.path());
  EXPECT_EQ(s.cpu_ticks, 1000u) << "guest time is part of user time";
  EXPECT_EQ(s.steal_ticks, 20u);
  EXPECT_EQ(s.swapped_pages, 42u);
  EXPECT_EQ(s.throttle_events, 12u);
  EXPECT_TRUE(s.suspended_ns);
  EXPECT_GT(s.client_ns, 0);
}

TEST(System, QuotaOfAControlGroupThrottlesToo) {
  const FakeRoot root;
  root.mount_v2("/");
  root.group_v2("/box");
  root.write("/sys/fs/cgroup/box/cpu.stat", "usage_usec 9\nnr_periods 10\nnr_throttled 6\nthrottled_usec 5\n");
  EXPECT_EQ(sample_system(root.path()).throttle_events, 6u);
}

TEST(System, WhatIsNotThereStaysAbsent) {
  const FakeRoot root;
  const SystemSample s = sample_system(root.path());
  EXPECT_FALSE(s.cpu_ticks || s.steal_ticks || s.swapped_pages || s.throttle_events);
  root.write("/proc/stat", "cpu  1 2 3\n");
  EXPECT_FALSE(sample_system(root.path()).cpu_ticks) << "a kernel that does not count stolen time";
}

TEST(System, ThisMachineSleptNotAtAllBetweenTwoSamples) {
  const SystemChanges changes = system_changes(sample_system(), sample_system());
  for (const std::string& fault : changes.faults) EXPECT_THAT(fault, testing::Not(testing::HasSubstr("suspend")));
}

TEST(System, ACounterThatWasSetBackIsNotWatched) {
  SystemSample a = FakeBench::sample(0, 100), b = FakeBench::sample(1, 200);
  a.swapped_pages = 9;
  EXPECT_THAT(system_changes(a, b).not_watched, testing::ElementsAre("swapping"));
}

TEST(Steal, OnePercentAndOneTick) {
  EXPECT_EQ(steal_fault(100, 1), "");
  EXPECT_EQ(steal_fault(100, 2), "");
  EXPECT_NE(steal_fault(100, 3), "");
  EXPECT_EQ(steal_fault(100000, 1001), "");
  EXPECT_NE(steal_fault(100000, 1002), "");
  EXPECT_EQ(steal_fault(0, 0), "");
}

}  // namespace
}  // namespace stet
