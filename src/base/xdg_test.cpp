#include "base/xdg.h"

#include <gtest/gtest.h>

namespace stet {
namespace {

TEST(UserPaths, CacheFollowsTheXdgRule) {
  EXPECT_EQ(user_paths_from("/c", "/home/u", nullptr).cache, "/c");
  EXPECT_EQ(user_paths_from(nullptr, "/home/u", "/other").cache, "/home/u/.cache");
  EXPECT_EQ(user_paths_from("", "/home/u", nullptr).cache, "/home/u/.cache");
  EXPECT_EQ(user_paths_from("relative", "/home/u", nullptr).cache, "/home/u/.cache");
  EXPECT_EQ(user_paths_from(nullptr, "relative", "/db").cache, "/db/.cache");
  EXPECT_EQ(user_paths_from(nullptr, "/", nullptr).cache, "/.cache");
  EXPECT_EQ(user_paths_from(nullptr, nullptr, nullptr).cache, "");
  EXPECT_EQ(user_paths_from("/c", nullptr, nullptr).home, "");
}

TEST(UserPaths, ReadsTheEnvironment) {
  const UserPaths paths = user_paths();
  EXPECT_TRUE(paths.cache.empty() || paths.cache[0] == '/');
}

}  // namespace
}  // namespace stet
