#include "base/mapped_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/sanitizer.h"

namespace stet {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class MappedFileTest : public testing::Test {
 protected:
  MappedFileTest() : folder_(fs::path(testing::TempDir()) / ("stet_mapped_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~MappedFileTest() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, size_t bytes) const {
    const fs::path path = folder_ / name;
    std::ofstream out(path, std::ios::binary);
    for (size_t i = 0; i < bytes; ++i) out.put(static_cast<char>(i * 7));
    return path.string();
  }

  fs::path folder_;
};

template <typename F>
void expect_refusal(F&& f, Code code, const std::string& text) {
  try {
    f();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(text));
  }
}

TEST_F(MappedFileTest, ReadsAnyRange) {
  MappedFile f(file("a", 10000));
  EXPECT_EQ(f.size(), 10000u);
  std::vector<std::byte> out(4097);
  f.read(5000, out);
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<std::byte>((5000 + i) * 7));
  f.release(0, 10000);
  f.will_need(1, 9999);
  f.read(10000 - out.size(), out);
  EXPECT_EQ(out.back(), static_cast<std::byte>(9999 * 7 % 256));
  MappedFile moved = std::move(f);
  EXPECT_EQ(moved.bytes()[1], std::byte{7});
}

TEST_F(MappedFileTest, SaysWhyAFileCannotBeMapped) {
  expect_refusal([&] { MappedFile(folder_ / "absent"); }, Code::kInput, "absent: no such file");
  expect_refusal([&] { MappedFile(folder_.string()); }, Code::kInput, "is a directory");
  expect_refusal([&] { MappedFile(file("plain", 1) + "/below"); }, Code::kInput, "no such file");
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_refusal([&] { MappedFile{pipe}; }, Code::kInput, "not a regular file");
  EXPECT_EQ(MappedFile(file("empty", 0)).size(), 0u);
  if (::geteuid() == 0) GTEST_SKIP() << "root may read every file: permission not tested";
  const std::string secret = file("secret", 1);
  fs::permissions(secret, fs::perms::none);
  expect_refusal([&] { MappedFile{secret}; }, Code::kResource, "no permission");
}

TEST_F(MappedFileTest, AShrunkenFileIsOneError) {
  const std::string path = file("shrinks", 40000);
  MappedFile f(path);
  fs::resize_file(path, 100);
  std::vector<std::byte> out(20000);
  expect_refusal([&] { f.read(15000, out); }, Code::kInput, "had 40000 bytes when it was opened and has 100 now");
  // Within the last page that is left nothing faults: the bytes read as zeros.
  expect_refusal([&] { f.read(200, std::span(out).first(10)); }, Code::kInput, "has 100 now");
}

TEST_F(MappedFileTest, AnOverwrittenFileIsNoticed) {
  const std::string path = file("changes", 5000);
  MappedFile f(path);
  fs::last_write_time(path, fs::file_time_type::clock::now() + std::chrono::seconds(5));
  std::vector<std::byte> out(10);
  expect_refusal([&] { f.read(0, out); }, Code::kInput, "was written to");
}

TEST_F(MappedFileTest, TheGuardWorksAgainAndAgainAndInEveryThread) {
  const std::string path = file("threads", 40000);
  MappedFile f(path);
  fs::resize_file(path, 0);
  const auto work = [&] {
    std::vector<std::byte> out(100);
    for (int i = 0; i < 200; ++i) ASSERT_FALSE(guarded_copy(out.data(), f.bytes().data() + 150 * i, out.size()));
    const char text[] = "sound";
    char copy[sizeof(text)];
    ASSERT_TRUE(guarded_copy(copy, text, sizeof(text)));
    ASSERT_STREQ(copy, text);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
}

// Sums mapped bytes directly, as a kernel would.
int sum_in_place(const MappedFile& f) {
  int sum = 0;
  for (std::byte b : f.bytes()) sum += static_cast<int>(b);
  return sum;
}

TEST_F(MappedFileTest, DirectUseOfAShrunkenFileEndsInOneLine) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const std::string path = folder_ / "pack\x1b[2J";
  EXPECT_EXIT(
      {
        fs::create_directories(folder_);
        std::ofstream(path) << std::string(40000, 'x');
        MappedFile f(path);
        fs::resize_file(path, 0);
        std::thread([&] { std::exit(sum_in_place(f) & 1); }).join();
      },
      testing::ExitedWithCode(kExitInput), "pack\\\\x1b\\[2J shrank or could not be read while it was in use");
}

// A SIGBUS that has nothing to do with a mapped file still kills.
TEST_F(MappedFileTest, AForeignFaultStaysFatal) {
#ifdef STET_UNDER_SANITIZER
  GTEST_SKIP() << "the sanitizer reports the signal itself";
#endif
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const std::string path = file("foreign", 100);
  EXPECT_EXIT(
      {
        const std::string mine = file("foreign", 100);
        MappedFile f(mine);
        const int fd = ::open(mine.c_str(), O_RDONLY);
        const char* data = static_cast<const char*>(::mmap(nullptr, 8192, PROT_READ, MAP_SHARED, fd, 0));
        std::exit(data[5000]);
      },
      testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(
      {
        MappedFile f(file("killed", 100));
        ::raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace stet
