#include "base/build_id.h"

#include <gtest/gtest.h>

namespace stet {
namespace {

TEST(BuildId, IsSixteenHexDigitsAndStays) {
  const std::string id = build_id();
  ASSERT_EQ(id.size(), 16u);
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(build_id(), id);
}

}  // namespace
}  // namespace stet
