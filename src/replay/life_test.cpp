#include "replay/life.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace stet {
namespace {

constexpr LifeState kAll[] = {LifeState::cold,      LifeState::loaded, LifeState::warmed,   LifeState::built,
                              LifeState::qualified, LifeState::armed,  LifeState::retiring, LifeState::drained};
constexpr int kArmed = 5;

// A life that has come as far as kAll[steps].
Life life_at(int steps) {
  Life life;
  for (int i = 1; i <= steps; ++i) life.advance(kAll[i]);
  return life;
}

TEST(Life, OnlyTheNextStateIsAllowed) {
  for (int at = 0; at <= kArmed; ++at)
    for (int to = 0; to < 8; ++to) {
      Life life = life_at(at);
      if (to == at + 1 && to <= kArmed) {
        EXPECT_NO_THROW(life.advance(kAll[to]));
        EXPECT_EQ(life.state(), kAll[to]);
      } else {
        EXPECT_THROW(life.advance(kAll[to]), Error) << at << " to " << to;
        EXPECT_EQ(life.state(), kAll[at]);
      }
    }
}

TEST(Life, RunsOnlyWhenArmed) {
  for (int at = 0; at < kArmed; ++at) EXPECT_THROW(life_at(at).require_armed(), Error) << at;
  EXPECT_NO_THROW(life_at(kArmed).require_armed());
  EXPECT_TRUE(life_at(kArmed).qualified());
}

TEST(Life, ArmingWithoutComparisonIsToldApart) {
  for (int at = 0; at <= kArmed; ++at) {
    Life life = life_at(at);
    if (life.state() != LifeState::built) {
      EXPECT_THROW(life.arm_unqualified(), Error);
      continue;
    }
    life.arm_unqualified();
    EXPECT_TRUE(life.armed());
    EXPECT_FALSE(life.qualified());
  }
}

TEST(Life, AFailureLeadsThroughDrainingToCold) {
  for (int at = 1; at <= kArmed; ++at) {
    Life life = life_at(at);
    LifeState seen = LifeState::armed;
    life.retire([&] { seen = life.state(); });
    EXPECT_EQ(seen, LifeState::retiring);
    EXPECT_EQ(life.state(), LifeState::cold);
    EXPECT_FALSE(life.qualified());
    EXPECT_THROW(life.require_armed(), Error);
    EXPECT_NO_THROW(life.advance(LifeState::loaded));  // a life may begin again
  }
}

}  // namespace
}  // namespace stet
