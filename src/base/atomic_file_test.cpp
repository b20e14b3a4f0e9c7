#include "base/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"

namespace stet {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class AtomicFileTest : public testing::Test {
 protected:
  AtomicFileTest() : folder_(fs::path(testing::TempDir()) / ("stet_atomic_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~AtomicFileTest() override { fs::remove_all(folder_); }

  size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  fs::path folder_;
};

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(AtomicFile& file, const std::string& text) { file.write(std::as_bytes(std::span(text))); }

template <typename F>
void expect_error(F&& f, Code code, const std::string& text) {
  try {
    f();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(text));
  }
}

TEST_F(AtomicFileTest, AppearsOnCommitOnly) {
  const std::string big(3'000'001, 'b');
  {
    AtomicFile file(folder_ / "a", {});
    write(file, "one ");
    write(file, big);
    EXPECT_FALSE(fs::exists(folder_ / "a"));
    file.commit();
  }
  EXPECT_EQ(content(folder_ / "a"), "one " + big);
  EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFileTest, LeavesNothingBehindWhenAbandoned) {
  { AtomicFile file(folder_ / "a", {}); }
  EXPECT_EQ(files(), 0u);
}

TEST_F(AtomicFileTest, ReplacesOnlyWhenAsked) {
  std::ofstream(folder_ / "a") << "old";
  expect_error([&] { AtomicFile(folder_ / "a", {}); }, Code::kUsage, "exists already");
  AtomicFile file(folder_ / "a", {.overwrite = true});
  write(file, "new");
  EXPECT_EQ(content(folder_ / "a"), "old");
  file.commit();
  EXPECT_EQ(content(folder_ / "a"), "new");
  AtomicFile second(folder_ / "b", {});
  std::ofstream(folder_ / "b") << "theirs";
  expect_error([&] { second.commit(); }, Code::kUsage, "another process");
  EXPECT_EQ(content(folder_ / "b"), "theirs");
}

TEST_F(AtomicFileTest, SaysWhyItCannotWrite) {
  expect_error([&] { AtomicFile(folder_ / "none" / "a", {}); }, Code::kResource, "does not exist");
  expect_error([&] { AtomicFile(folder_, {.overwrite = true}); }, Code::kUsage, "not a regular file");
  expect_error([&] { AtomicFile(folder_ / "a", {.expected_bytes = uint64_t{1} << 60}); }, Code::kResource,
               "needs 1152921504606846976 bytes");
  EXPECT_EQ(files(), 0u);
}

// The file size limit stands in for a full disk: the same write() fails in the same way.
TEST_F(AtomicFileTest, AFullDiskIsOneErrorAndLeavesNothing) {
  rlimit old = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {2'000'000, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_error(
      [&] {
        AtomicFile file(folder_ / "a", {});
        for (int i = 0; i < 5; ++i) write(file, std::string(1'000'000, 'x'));
        file.commit();
      },
      Code::kResource, "after 2000000 bytes; make room");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, previous);
  EXPECT_EQ(files(), 0u);
}

}  // namespace
}  // namespace stet
