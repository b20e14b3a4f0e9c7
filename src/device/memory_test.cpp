#include "device/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "base/error.h"
#include "base/sanitizer.h"
#include "device/fake_root_test.h"

namespace stet {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kGiB = 1 << 30;

// Under a sanitizer the shadow memory needs the addresses that a limit would take away.
#ifdef STET_UNDER_SANITIZER
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Runs a body in a child process whose limit is `bytes`; true when it returned true.
bool in_child_with_limit(__rlimit_resource limit, uint64_t bytes, const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit value{bytes, bytes};
    _exit(setrlimit(limit, &value) == 0 && body() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool throws_resource_error(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code() == Code::kResource && std::strstr(error.what(), "GiB") != nullptr;
  }
  return false;
}

TEST(MemoryBudget, SmallerOfSystemAndGroupsCounts) {
  FakeRoot fake;
  fake.write("/proc/meminfo", "MemTotal: 9000000 kB\nMemAvailable:    4194304 kB\n");
  EXPECT_EQ(memory_budget(fake.path()).available_bytes, 4 * kGiB);
  EXPECT_EQ(memory_budget(fake.path()).cgroup_bytes, MemoryBudget::kNoLimit);
  fake.mount_v2("/");
  fake.group_v2("/user/app");
  fake.write("/sys/fs/cgroup/user/app/memory.max", "max\n");
  fake.write("/sys/fs/cgroup/user/memory.max", "3221225472\n");
  fake.write("/sys/fs/cgroup/user/memory.current", "2147483648\n");
  fake.write("/sys/fs/cgroup/user/memory.stat", "anon 1610612736\ninactive_file 536870912\nactive_file 1\n");
  const MemoryBudget budget = memory_budget(fake.path());
  EXPECT_EQ(budget.cgroup_bytes, 3 * kGiB / 2);
  EXPECT_EQ(budget.available_bytes, 3 * kGiB / 2);
  EXPECT_THAT(budget.explain(), HasSubstr("1.50 GiB available (system 4.00 GiB, cgroup 1.50 GiB at"));
  fake.write("/sys/fs/cgroup/user/memory.high", "1610612736\n");
  EXPECT_EQ(memory_budget(fake.path()).available_bytes, 0u);
}

TEST(MemoryBudget, Version1) {
  FakeRoot fake;
  fake.write("/proc/meminfo", "MemAvailable: 4194304 kB\n");
  fake.write("/proc/self/cgroup", "4:memory:/box\n");
  fake.write("/proc/self/mountinfo", "36 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  fake.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  fake.write("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "1073741824\n");
  fake.write("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "629145600\n");
  fake.write("/sys/fs/cgroup/memory/box/memory.stat", "inactive_file 1\ntotal_inactive_file 104857600\n");
  EXPECT_EQ(memory_budget(fake.path()).available_bytes, 524 * kMiB);
  // Used up, and more: what is left is nothing, not a huge number.
  fake.write("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "99999999999\n");
  EXPECT_EQ(memory_budget(fake.path()).available_bytes, 0u);
}

TEST(MemoryBudget, MissingMeminfoIsAnError) {
  FakeRoot fake;
  EXPECT_THROW(memory_budget(fake.path()), Error);
}

TEST(MemoryBudget, ThisMachine) {
  const MemoryBudget budget = memory_budget();
  EXPECT_GT(budget.available_bytes, 0u);
  EXPECT_LE(budget.available_bytes, budget.system_bytes);
}

TEST(HugePages, AreAllowedUnlessTheSystemSaysNever) {
  FakeRoot root;
  EXPECT_FALSE(huge_pages_allowed(root.path())) << "a kernel without them";
  for (const auto& [modes, allowed] : {std::pair("always [madvise] never\n", true), {"[always] madvise never\n", true},
                                       {"always madvise [never]\n", false}}) {
    root.write("/sys/kernel/mm/transparent_hugepage/enabled", modes);
    EXPECT_EQ(huge_pages_allowed(root.path()), allowed) << modes;
  }
}

TEST(Rss, FollowsWhatIsTouched) {
  const uint64_t before = current_rss_bytes();
  ASSERT_GT(before, 0u);
  {
    AlignedBuffer buffer(64 * kMiB);
    std::memset(buffer.data(), 1, buffer.bytes());
    EXPECT_GE(current_rss_bytes(), before + 60 * kMiB);
  }
  EXPECT_LT(current_rss_bytes(), before + 32 * kMiB);
  EXPECT_GE(peak_rss_bytes(), before + 60 * kMiB);
}

TEST(Reservation, GrowsInPlaceAndStartsAsZero) {
  Reservation range(kGiB);
  std::byte* const start = range.data();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(start) % (2 * kMiB), 0u);
  EXPECT_EQ(range.committed_bytes(), 0u);
  for (uint64_t bytes : {uint64_t{1}, 3 * kMiB, 5 * kMiB, 3 * kMiB, 8 * kMiB}) {
    const uint64_t before = range.committed_bytes();
    range.commit(bytes);
    EXPECT_GE(range.committed_bytes(), bytes);
    EXPECT_EQ(range.data(), start);
    for (uint64_t i = before; i < range.committed_bytes(); i += 4096) ASSERT_EQ(start[i], std::byte{0});
    EXPECT_TRUE(before == 0 || start[before - 1] == std::byte{7}) << "committed memory was lost";
    start[range.committed_bytes() - 1] = std::byte{7};
  }
  range.commit(kGiB);
  EXPECT_EQ(range.committed_bytes(), kGiB);
}

TEST(Reservation, UsesNoMemoryBeforeItIsTouched) {
  const uint64_t before = current_rss_bytes();
  Reservation range(64 * kGiB);
  range.commit(kGiB);
  EXPECT_LT(current_rss_bytes(), before + 16 * kMiB);
}

TEST(Reservation, SmallRangesArePages) {
  Reservation range(5000);
  EXPECT_EQ(range.reserved_bytes(), 8192u);
  range.commit(1);
  EXPECT_EQ(range.committed_bytes(), 4096u);
  range.data()[4095] = std::byte{1};
  Reservation none(0);
  none.commit(0);
  EXPECT_EQ(none.data(), nullptr);
}

TEST(Reservation, WithoutHugePagesItGrowsByPages) {
  Reservation range(64 * kMiB, Reservation::Pages::kSmall);
  range.commit(4097);
  EXPECT_EQ(range.committed_bytes(), 8192u);
}

TEST(Reservation, MovesItsRangeWithoutMovingTheAddresses) {
  Reservation a(4 * kMiB);
  a.commit(100);
  a.data()[0] = std::byte{9};
  std::byte* const start = a.data();
  Reservation b;
  b = std::move(a);
  EXPECT_EQ(b.data(), start);
  EXPECT_EQ(b.data()[0], std::byte{9});
  Reservation c(std::move(b));
  EXPECT_EQ(c.data(), start);
  EXPECT_GE(c.committed_bytes(), 100u);
}

TEST(Reservation, RefusalsNameTheNumbers) {
  EXPECT_THROW(Reservation(UINT64_MAX), Error);
  EXPECT_THROW(Reservation(UINT64_MAX / 4), Error);
  Reservation range(4096);
  EXPECT_THROW(range.commit(4097), Error);
  if (kSanitized) GTEST_SKIP() << "limits cannot be set under a sanitizer";
  EXPECT_TRUE(in_child_with_limit(RLIMIT_AS, kGiB,
                                  [] { return throws_resource_error([] { Reservation too_long(4 * kGiB); }); }));
  EXPECT_TRUE(in_child_with_limit(RLIMIT_DATA, 256 * kMiB, [] {
    Reservation grows(4 * kGiB);
    grows.commit(16 * kMiB);
    const uint64_t before = grows.committed_bytes();
    return throws_resource_error([&] { grows.commit(kGiB); }) && grows.committed_bytes() == before;
  }));
}

TEST(AlignedBuffer, AlignedAndZero) {
  for (uint64_t bytes : {uint64_t{1}, uint64_t{64}, uint64_t{1000}, 2 * kMiB, 3 * kMiB + 5}) {
    AlignedBuffer buffer(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % (bytes >= 2 * kMiB ? 2 * kMiB : 64), 0u);
    for (uint64_t i = 0; i < bytes; ++i) ASSERT_EQ(buffer.data()[i], std::byte{0});
    std::memset(buffer.data(), 255, bytes);
    EXPECT_EQ(buffer.as<float>().size(), bytes / 4);
    AlignedBuffer moved = std::move(buffer);
    EXPECT_EQ(moved.data()[bytes - 1], std::byte{255});
    EXPECT_EQ(moved.bytes(), bytes);
  }
  AlignedBuffer none(0);
  EXPECT_TRUE(none.as<int>().empty());
}

TEST(AlignedBuffer, RefusalNamesTheNumbers) {
  EXPECT_TRUE(throws_resource_error([] { AlignedBuffer absurd(UINT64_MAX - 7); }));
  if (kSanitized) GTEST_SKIP() << "limits cannot be set under a sanitizer";
  EXPECT_TRUE(in_child_with_limit(RLIMIT_AS, kGiB,
                                  [] { return throws_resource_error([] { AlignedBuffer large(4 * kGiB); }); }));
}

}  // namespace
}  // namespace stet
