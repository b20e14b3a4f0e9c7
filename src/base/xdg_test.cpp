#include "base/xdg.h"

#include <gtest/gtest.h>

namespace stet {
namespace {

TEST(UserPaths, CacheFollowsTheXdgRule) {
  const auto cache = [](const char* chosen, const char* home, const char* database) {
    return user_paths_from(chosen, "/d", home, database).cache;
  };
  EXPECT_EQ(cache("/c", "/home/u", nullptr), "/c");
  EXPECT_EQ(cache(nullptr, "/home/u", "/other"), "/home/u/.cache");
  EXPECT_EQ(cache("", "/home/u", nullptr), "/home/u/.cache");
  EXPECT_EQ(cache("relative", "/home/u", nullptr), "/home/u/.cache");
  EXPECT_EQ(cache(nullptr, "relative", "/db"), "/db/.cache");
  EXPECT_EQ(cache(nullptr, "/", nullptr), "/.cache");
  EXPECT_EQ(cache(nullptr, nullptr, nullptr), "");
  EXPECT_EQ(user_paths_from("/c", "/d", nullptr, nullptr).home, "");
}

TEST(UserPaths, DataFollowsTheXdgRule) {
  const auto data = [](const char* chosen, const char* home) { return user_paths_from("/c", chosen, home, nullptr).data; };
  EXPECT_EQ(data("/d", "/home/u"), "/d");
  EXPECT_EQ(data(nullptr, "/home/u"), "/home/u/.local/share");
  EXPECT_EQ(data("relative", "/home/u"), "/home/u/.local/share");
  EXPECT_EQ(data("", "/"), "/.local/share");
  EXPECT_EQ(data(nullptr, nullptr), "");
}

TEST(UserPaths, ReadsTheEnvironment) {
  const UserPaths paths = user_paths();
  EXPECT_TRUE(paths.cache.empty() || paths.cache[0] == '/');
}

}  // namespace
}  // namespace stet
