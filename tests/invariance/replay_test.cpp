// Replay: eager, recorded, replayed, in any mixture, the first or the ten-thousandth time.
#include <gtest/gtest.h>

#include "base/hash.h"
#include "mutants.h"

namespace stet::test {
namespace {

constexpr ReplayMode kModes[] = {ReplayMode::eager, ReplayMode::recorded, ReplayMode::replayed};

class Replay : public testing::TestWithParam<const char*> {};

TEST_P(Replay, EveryModeGivesTheSameBits) {
  const TestModel model(GetParam());
  const auto tokens = test_tokens(model.desc, 200);
  const std::vector<uint32_t> pieces = {40, 1, 16, 3};
  Way way;
  way.decoder.mode = ReplayMode::eager;
  const Trace want = Machine(model, way).feed(tokens, pieces);
  for (ReplayMode mode : kModes)
    for (unsigned threads : {1u, 2u}) {
      way.decoder.mode = mode;
      way.pool.threads = threads;
      EXPECT_EQ(difference(Machine(model, way).feed(tokens, pieces), want), "") << static_cast<int>(mode) << " " << threads;
    }
}

TEST_P(Replay, ModesMayChangeFromPassToPass) {
  const TestModel model(GetParam());
  const auto tokens = test_tokens(model.desc, 160);
  const Trace want = Machine(model, {}).feed(tokens, {1});
  Machine machine(model, {});
  Random random(7);
  for (uint32_t at = 0; at < 160;) {
    const uint32_t n = std::min(random.between(1, 20), 160 - at);
    machine.decoder().set_mode(kModes[random.below(3)]);
    Trace got = machine.feed(std::span(tokens).subspan(at, n), {n}, at);
    at += n;
    if (at < 160) got.kv = want.kv;
    EXPECT_EQ(difference(got, want), "") << "up to " << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Replay,
                         testing::Values("synth:tiny-wide:q4_0", "synth:tiny-gqa:q8_0", "synth:tiny-256:q6_k",
                                         "synth:tiny:f16", "synth:tiny-256:f8_e4m3 by e4m3"));

// Replays one list again and again: two texts in turn, so that every replay finds rows of the other text in its place. Returns the
// number of the first replay whose logits are not those that its text and position had when they were new; `replays` when all are.
uint32_t first_wrong_replay(const TestModel& model, const Way& way, uint32_t replays) {
  constexpr uint32_t kLength = 150;
  const std::vector<int32_t> texts[2] = {test_tokens(model.desc, kLength, 1), test_tokens(model.desc, kLength, 2)};
  std::vector<uint64_t> want[2];
  const auto hash = [&](const float* logits) { return xxh3(logits, model.desc.vocab * sizeof(float)); };
  for (int t : {0, 1}) {
    Machine fresh(model, {});
    for (uint32_t p = 0; p < kLength; ++p) want[t].push_back(hash(fresh.decoder().forward(std::span(texts[t]).subspan(p, 1), p, 1)));
  }
  Machine machine(model, way);
  mutants::forget();  // the launches that warmed the lists
  for (uint32_t i = 0; i < replays; ++i) {
    const uint32_t text = i / kLength % 2, p = i % kLength;
    if (hash(machine.decoder().forward(std::span(texts[text]).subspan(p, 1), p, 1)) != want[text][p]) return i;
  }
  return replays;
}

TEST(ReplaySoak, TenThousandReplaysGiveTheSameBits) {
  const TestModel model("synth:tiny:q4_0");
  EXPECT_EQ(first_wrong_replay(model, {}, 10000), 10000u);
}

// The counters of the pool wrap during the first launches, each time anew.
TEST(ReplaySoak, CountersMayWrap) {
  const TestModel model("synth:tiny-gqa:q8_0");
  for (uint32_t first : {0xffffffffu, 0xfffffff0u, 0x7ffffff8u}) {
    Way way;
    way.pool.threads = 2;
    way.pool.first_count = first;
    EXPECT_EQ(first_wrong_replay(model, way, 400), 400u) << first;
  }
}

TEST(ReplayMutants, PositionFrozenAtTheFirstReplayIsCaught) {
  const TestModel model("synth:tiny:q4_0");
  const Kernels wrong = mutants::rotation_of_first_call();
  Way way;
  way.kernels = &wrong;
  const auto tokens = test_tokens(model.desc, 8);
  mutants::forget();
  EXPECT_EQ(difference(Machine(model, way).feed(std::span(tokens).first(1), {1}),
                       Machine(model, {}).feed(std::span(tokens).first(1), {1})), "") << "the first run is right";
  mutants::forget();
  EXPECT_NE(difference(Machine(model, way).feed(tokens, {1}), Machine(model, {}).feed(tokens, {1})), "");
}

// Four stores a replay: the 2048th belongs to the 512th. A short run sees nothing of it.
TEST(ReplayMutants, ElevenBitCounterThatRollsOverIsCaughtByTheSoak) {
  const TestModel model("synth:tiny:q4_0");
  const Kernels wrong = mutants::loses_store_2048();
  Way way;
  way.kernels = &wrong;
  EXPECT_EQ(first_wrong_replay(model, way, 500), 500u);
  EXPECT_LT(first_wrong_replay(model, way, 10000), 520u);
}

}  // namespace
}  // namespace stet::test
