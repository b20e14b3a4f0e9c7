#include "device/cache_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "device/fake_root_test.h"

namespace stet {
namespace {

using testing::HasSubstr;

constexpr uid_t kSomebodyElse = 54321;

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kResource) << error.what();
    return error.what();
  }
  return "no error";
}

unsigned mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

bool wait_forever(double) { return true; }

// Runs a body as a user without privileges, in a child; its text comes back.
std::string as_plain_user(const std::string& folder, const std::function<std::string()>& body) {
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  const bool root = geteuid() == 0;
  EXPECT_TRUE(!root || chown(folder.c_str(), kSomebodyElse, kSomebodyElse) == 0);
  const pid_t child = fork();
  if (child == 0) {
    if (root && setuid(kSomebodyElse) != 0) _exit(1);
    const std::string text = body();
    _exit(write(pipe_ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(pipe_ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(pipe_ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(pipe_ends[0]);
  waitpid(child, nullptr, 0);
  return text;
}

class Cache : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return root_.path() + "/" + name; }
  FakeRoot root_;
};

TEST_F(Cache, IsMadeForTheUserAlone) {
  const mode_t before = umask(0);
  const CacheDir cache(path("a/b/stet/"));
  umask(before);
  EXPECT_EQ(cache.path(), path("a/b/stet"));
  for (const char* folder : {"a", "a/b", "a/b/stet"}) EXPECT_EQ(mode_of(path(folder)), 0700u) << folder;
  CacheDir again(path("a/b/stet"));  // it is there now
  again.require_writable();
  EXPECT_GT(again.free_bytes(), 0u);
}

TEST_F(Cache, FolderThatOthersCanWriteIsRefused) {
  for (unsigned mode : {0720u, 0702u, 0777u, 01777u}) {
    std::filesystem::create_directory(path("stet"));
    ASSERT_EQ(chmod(path("stet").c_str(), mode), 0);
    EXPECT_THAT(error_of([&] { CacheDir cache(path("stet")); }), HasSubstr("chmod go-w"));
    std::filesystem::remove(path("stet"));
  }
}

TEST_F(Cache, FolderOfSomebodyElseIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  std::filesystem::create_directory(path("stet"));
  ASSERT_EQ(chmod(path("stet").c_str(), 0700), 0);
  ASSERT_EQ(chown(path("stet").c_str(), kSomebodyElse, kSomebodyElse), 0);
  EXPECT_THAT(error_of([&] { CacheDir cache(path("stet")); }), HasSubstr("belongs to user 54321"));
}

TEST_F(Cache, LinksAndFilesAreNoFolders) {
  std::filesystem::create_directory(path("real"));
  std::filesystem::create_symlink(path("real"), path("link"));
  EXPECT_THAT(error_of([&] { CacheDir cache(path("link")); }), HasSubstr("symbolic link"));
  std::filesystem::create_symlink(path("nowhere"), path("dangling"));
  EXPECT_THAT(error_of([&] { CacheDir cache(path("dangling")); }), HasSubstr("symbolic link"));
  root_.write("/file", "x");
  EXPECT_THAT(error_of([&] { CacheDir cache(path("file")); }), HasSubstr("not a folder"));
  EXPECT_THAT(error_of([&] { CacheDir cache(path("file/stet")); }), HasSubstr("--pack none"));
}

TEST_F(Cache, ReadOnlyFolderNamesTheWayOut) {
  const std::string folder = path("stet");
  std::filesystem::create_directory(folder);
  ASSERT_EQ(chmod(root_.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0555), 0);
  const auto messages = [&](const std::function<void(const std::string&)>& body) {
    return as_plain_user(folder, [&] { return error_of([&] { body(folder); }); });
  };
  EXPECT_THAT(messages([](const std::string& f) { CacheDir(f).require_writable(); }), HasSubstr("--pack none"));
  EXPECT_THAT(messages([](const std::string& f) { CacheDir(f).lock("pack", wait_forever); }), HasSubstr("--pack none"));
  EXPECT_THAT(messages([](const std::string& f) { CacheDir cache(f + "/deeper"); }), HasSubstr("--pack none"));
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
}

TEST_F(Cache, FilesThatAreNotOursAreRefused) {
  const CacheDir cache(path("stet"));
  EXPECT_FALSE(cache.has("pack"));
  root_.write("/stet/pack", "x");
  ASSERT_EQ(chmod(path("stet/pack").c_str(), 0600), 0);
  EXPECT_TRUE(cache.has("pack"));
  ASSERT_EQ(chmod(path("stet/pack").c_str(), 0620), 0);
  EXPECT_THAT(error_of([&] { cache.has("pack"); }), HasSubstr("mode 0620"));
  std::filesystem::create_symlink(path("stet/pack"), path("stet/link"));
  EXPECT_THAT(error_of([&] { cache.has("link"); }), HasSubstr("link"));
  std::filesystem::create_directory(path("stet/folder"));
  EXPECT_THAT(error_of([&] { cache.has("folder"); }), HasSubstr("no regular file"));
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(chmod(path("stet/pack").c_str(), 0600), 0);
  ASSERT_EQ(chown(path("stet/pack").c_str(), kSomebodyElse, kSomebodyElse), 0);
  EXPECT_THAT(error_of([&] { cache.has("pack"); }), HasSubstr("belongs to user"));
}

TEST_F(Cache, NamesThatLeaveTheFolderAreBugs) {
  const CacheDir cache(path("stet"));
  for (const char* name : {"", ".", "..", "../x", "a/b", ".hidden"}) EXPECT_THROW(cache.path_of(name), Error) << name;
  EXPECT_EQ(cache.path_of("a"), path("stet/a"));
}

TEST_F(Cache, ListsAndRemoves) {
  const CacheDir cache(path("stet"));
  root_.write("/stet/b", "12345");
  root_.write("/stet/a", "1");
  std::filesystem::create_directory(path("stet/folder"));
  const CacheLock lock = cache.lock("a", wait_forever);
  const std::vector<CacheEntry> entries = cache.list();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[1].bytes, 5u);
  EXPECT_GT(entries[1].modified_s, 1'500'000'000);
  cache.remove("b");
  cache.remove("b");
  EXPECT_EQ(cache.list().size(), 1u);
}

TEST_F(Cache, LockExcludesAndLeavesNothingBehind) {
  const CacheDir cache(path("stet"));
  std::atomic<int> inside{0}, total{0}, worst{0};  // the kernel's lock orders processes; the language knows nothing of it
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        const CacheLock lock = cache.lock("pack", wait_forever);
        worst = std::max(worst.load(), ++inside);
        ++total;
        if (i % 8 == 0) std::this_thread::yield();
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(worst, 1);
  EXPECT_EQ(total, 100);
  EXPECT_TRUE(std::filesystem::is_empty(path("stet")));
}

TEST_F(Cache, LockOfAnotherProcessIsWaitedForAndSaidSo) {
  const CacheDir cache(path("stet"));
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(done), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(done[1]);
    const CacheLock lock = cache.lock("pack", wait_forever);
    char byte = 1;
    if (write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) < 0) _exit(1);
    _exit(0);  // dies with the lock held, and its file in place
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  std::vector<double> calls;
  try {
    cache.lock("pack", [&](double seconds) {
      calls.push_back(seconds);
      return calls.size() < 3;
    });
    ADD_FAILURE() << "the lock was given twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kCancelled);
  }
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0], 0);
  EXPECT_GT(calls[2], 0.05);
  const CacheLock other = cache.lock("another", [](double) { return false; });  // names do not share a lock
  close(done[1]);
  const CacheLock lock = cache.lock("pack", wait_forever);
  waitpid(child, nullptr, 0);
}

TEST(CachePath, EndsInTheProgramsName) {
  const std::string path = CacheDir::default_path();
  EXPECT_EQ(path.substr(path.size() - 5), "/stet");
}

}  // namespace
}  // namespace stet
