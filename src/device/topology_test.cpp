#include "device/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "device/cgroup.h"
#include "device/fake_root_test.h"

namespace stet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Cgroup, TightestQuotaUpToTheRootCounts) {
  FakeRoot fake;
  fake.mount_v2("/");
  fake.group_v2("/user/app");
  fake.write("/sys/fs/cgroup/user/app/cpu.max", "800000 100000\n");
  fake.write("/sys/fs/cgroup/user/cpu.max", "250000 100000\n");
  std::string source;
  EXPECT_EQ(cgroup_cpu_quota(fake.path(), &source), 2.5);
  EXPECT_EQ(source, fake.path() + "/sys/fs/cgroup/user");
}

TEST(Cgroup, MaxMeansNoQuota) {
  FakeRoot fake;
  fake.mount_v2("/");
  fake.group_v2("/app");
  fake.write("/sys/fs/cgroup/app/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(fake.path()), std::nullopt);
}

TEST(Cgroup, Version1WithSeveralControllersInOneMount) {
  FakeRoot fake;
  fake.write("/proc/self/cgroup", "5:cpu,cpuacct:/box/inner\n4:memory:/elsewhere\n0::/\n");
  fake.write("/proc/self/mountinfo",
             "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
             "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
             "36 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n");
  fake.write("/sys/fs/cgroup/cpu,cpuacct/box/inner/cpu.cfs_quota_us", "-1\n");
  fake.write("/sys/fs/cgroup/cpu,cpuacct/box/inner/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpu_quota(fake.path()), std::nullopt);
  fake.write("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "50000\n");
  fake.write("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpu_quota(fake.path()), 0.5);
  EXPECT_EQ(thread_budget(fake.path()).threads, 1u);
}

// A container without its own cgroup namespace: the file names the group as the host sees it, the mount begins there.
TEST(Cgroup, MountOfAPartOfTheHierarchy) {
  FakeRoot fake;
  fake.mount_v2("/docker/abc");
  fake.group_v2_without_directory("/docker/abc/job");
  fake.write("/sys/fs/cgroup/job/cpu.max", "300000 100000");
  EXPECT_EQ(cgroup_cpu_quota(fake.path()), 3.0);
  fake.group_v2_without_directory("/docker/abcdef");  // not below the mount: its top is the best that is known
  fake.write("/sys/fs/cgroup/cpu.max", "100000 100000");
  EXPECT_EQ(cgroup_cpu_quota(fake.path()), 1.0);
}

TEST(Cgroup, GroupThatIsNotMountedFallsBackToTheGroupsAboveIt) {
  FakeRoot fake;
  fake.mount_v2("/");
  fake.group_v2_without_directory("/a/b/c");
  fake.write("/sys/fs/cgroup/a/cpu.max", "200000 100000");
  EXPECT_EQ(cgroup_cpu_quota(fake.path()), 2.0);
}

TEST(Cgroup, MountPointWithASpace) {
  FakeRoot fake;
  fake.write("/proc/self/cgroup", "0::/\n");
  fake.write("/proc/self/mountinfo", "41 31 0:38 / /my\\040groups rw - cgroup2 cgroup2 rw\n");
  fake.write("/my groups/cpu.max", "700000 100000");
  EXPECT_EQ(cgroup_cpu_quota(fake.path()), 7.0);
}

TEST(Cgroup, DamagedFilesAreNoQuota) {
  FakeRoot fake;
  EXPECT_EQ(cgroup_cpu_quota(fake.path()), std::nullopt);  // nothing there at all
  fake.mount_v2("/");
  fake.group_v2("/app");
  for (const char* text : {"", "\n", "x y", "100000", "100000 0", "-5 100000", "99999999999999999999999 100000"}) {
    fake.write("/sys/fs/cgroup/app/cpu.max", text);
    EXPECT_EQ(cgroup_cpu_quota(fake.path()), std::nullopt) << '"' << text << '"';
  }
  fake.write("/proc/self/mountinfo", "garbage\n1 2 3\n - \n1 2 3 4 5 6 - cgroup2\n");
  EXPECT_EQ(cgroup_cpu_quota(fake.path()), std::nullopt);
}

TEST(Topology, BudgetIsTheSmallestOfThree) {
  const ThreadBudget budget = thread_budget();
  EXPECT_GE(budget.threads, 1u);
  EXPECT_LE(budget.threads, budget.allowed_cpus);
  EXPECT_LE(budget.threads, budget.physical_cores);
  EXPECT_LE(budget.physical_cores, budget.allowed_cpus);
  EXPECT_THAT(budget.explain(), HasSubstr("physical core"));
}

TEST(Topology, AffinityMaskLimitsTheBudget) {
  unsigned allowed = 0, threads = 0;
  std::thread narrow([&] {  // the mask belongs to a thread, so the test program keeps its own
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(allowed_processors().front().cpu, &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    allowed = thread_budget().allowed_cpus;
    threads = thread_budget().threads;
  });
  narrow.join();
  EXPECT_EQ(allowed, 1u);
  EXPECT_EQ(threads, 1u);
}

TEST(Topology, PinOrderFillsCoresBeforeTheirSecondThreads) {
  EXPECT_THAT(pin_order({{0, 0}, {1, 0}, {2, 1}, {3, 1}, {7, 9}}), ElementsAre(0, 2, 7, 1, 3));
  EXPECT_THAT(pin_order({{0, 0}, {1, 1}, {4, 0}, {5, 1}}), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(pin_order({}), ElementsAre());
}

TEST(Topology, ExplanationNamesEveryNumber) {
  ThreadBudget budget;
  budget.threads = 2;
  budget.allowed_cpus = 8;
  budget.physical_cores = 4;
  EXPECT_EQ(budget.explain(), "2 threads: 8 processors allowed, 4 physical cores, no cgroup quota");
  budget.quota = 2.5;
  budget.quota_source = "/sys/fs/cgroup/app";
  EXPECT_EQ(budget.explain(),
            "2 threads: 8 processors allowed, 4 physical cores, cgroup quota 2.50 (/sys/fs/cgroup/app)");
}

TEST(SmallFiles, Numbers) {
  EXPECT_EQ(whole_number("12\n"), 12u);
  for (const char* text : {"", "max", "-1", "12x", "1 2", "18446744073709551616"})
    EXPECT_EQ(whole_number(text), std::nullopt);
  EXPECT_EQ(number_after("MemTotal: 5 kB\nMemAvailable:   77 kB\n", "MemAvailable:"), 77u);
  EXPECT_EQ(number_after("total_inactive_file 9\ninactive_file 8", "inactive_file"), 8u);
  EXPECT_EQ(number_after("inactive_file\nx 8", "inactive_file"), std::nullopt);
  EXPECT_EQ(read_small_file("/nonexistent/file"), std::nullopt);
}

}  // namespace
}  // namespace stet
