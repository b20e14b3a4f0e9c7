#include "lab/compare/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "base/error.h"

namespace stet {
namespace {

using ::testing::HasSubstr;

TEST(ChildProcess, EndsByItself) {
  const TemporaryFolder folder;
  ChildProcess child({"sh", "-c", "echo out; echo err >&2; exit 7"}, folder.file("out"), folder.file("log"));
  EXPECT_EQ(child.wait(60, nullptr), 7);
  EXPECT_EQ(child.exit_code(), 7);
  EXPECT_EQ(child.output(), "out\n");
  EXPECT_EQ(child.last_words(), "err\n");
}

TEST(ChildProcess, ASignalIsItsCode) {
  const TemporaryFolder folder;
  ChildProcess child({"sh", "-c", "kill -9 $$"}, folder.file("out"), folder.file("log"));
  EXPECT_EQ(child.wait(60, nullptr), 128 + SIGKILL);
}

TEST(ChildProcess, WhatIsNoProgramIsSaidAtOnce) {
  const TemporaryFolder folder;
  try {
    ChildProcess child({"no-such-program-here", "x"}, folder.file("out"), folder.file("log"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUsage);
    EXPECT_THAT(e.what(), HasSubstr("no-such-program-here cannot be started"));
  }
}

// Whoever ignores SIGTERM, and what it started itself, is killed.
TEST(ChildProcess, ItsWholeGroupEnds) {
  const TemporaryFolder folder;
  const std::string pids = folder.file("pids");
  ChildProcess child(
      {"sh", "-c",
       "trap '' TERM; sleep 300 & echo $! > " + pids + ".new; mv " + pids + ".new " + pids + "; wait; wait"},
      folder.file("out"), folder.file("log"));
  pid_t grandchild = 0;
  while (grandchild == 0) {
    std::ifstream(pids) >> grandchild;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_FALSE(child.exit_code());
  child.end(0.1);
  EXPECT_TRUE(child.exit_code());
  for (int i = 0; i < 1000 && kill(grandchild, 0) == 0; ++i) {  // a zombie until its new parent has waited for it
    std::ifstream stat("/proc/" + std::to_string(grandchild) + "/stat");
    std::string number, name, state;
    stat >> number >> name >> state;
    if (state == "Z") break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_LT(i, 999) << "the grandchild lives";
  }
}

TEST(ChildProcess, StopsWhenAsked) {
  const TemporaryFolder folder;
  ChildProcess child({"sleep", "300"}, folder.file("out"), folder.file("log"));
  int asked = 0;
  EXPECT_THROW(child.wait(60, [&] { return ++asked > 2; }), Error);
  EXPECT_EQ(child.exit_code(), 128 + SIGKILL);
  ChildProcess slow({"sleep", "300"}, folder.file("out"), folder.file("log"));
  EXPECT_THROW(slow.wait(0.05, nullptr), Error);
}

TEST(TemporaryFolder, GoesWithItsFiles) {
  std::string path;
  {
    const TemporaryFolder folder;
    path = folder.file("x");
    std::ofstream(path) << "x";
    EXPECT_EQ(access(path.c_str(), F_OK), 0);
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(FreePort, IsAPort) {
  EXPECT_GT(free_port(), 1023u);
  EXPECT_LT(free_port(), 65536u);
}

}  // namespace
}  // namespace stet
