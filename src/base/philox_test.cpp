#include "base/philox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stet {
namespace {

using testing::ElementsAre;

// The known answers that the authors publish with Random123.
TEST(Philox, KnownAnswers) {
  EXPECT_THAT(philox4x32({{0, 0, 0, 0}}, 0, 0).word, ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  const uint32_t ones = 0xffffffffu;
  EXPECT_THAT(philox4x32({{ones, ones, ones, ones}}, ones, ones).word,
              ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(philox4x32({{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}}, 0xa4093822u, 0x299f31d0u).word,
              ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

TEST(Philox, IsAConstantExpression) { static_assert(philox4x32({{0, 0, 0, 0}}, 0, 0).word[0] == 0x6627e8d5u); }

}  // namespace
}  // namespace stet
