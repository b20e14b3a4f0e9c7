// States as rings (state/state_plan.h) against the same states kept for ever: passes of every width across every wrap,
// returns, and rings or promises that are one row short.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "state/session.h"
#include "state/test_model.h"
#include "weights/hf/checkpoint.h"

namespace stet {
namespace {

constexpr uint32_t kRingContext = 1024;

// Rings of exactly what a pass needs, and `more` rows: a return of kWideRows + more positions.
ModelDesc exact_rings(ModelDesc d, uint32_t more = 0) {
  for (StateSpec& s : d.states)
    if (s.reach != 0) s.ring = s.reach - 1 + kWideRows + more;
  return d;
}

ModelDesc no_rings(ModelDesc d) {
  for (StateSpec& s : d.states) s.reach = s.ring = 0;
  return d;
}

// A wrong model: of one state the last row that is read was forgotten. Its ring, exact or with `more` rows, is as that
// says.
ModelDesc one_row_short(ModelDesc d, const std::string& state, uint32_t more = 0) {
  for (StateSpec& s : d.states)
    if (s.name == state) s.reach -= 1;
  return exact_rings(std::move(d), more);
}

class Rings : public testing::TestWithParam<std::tuple<const char*, KvFormat>> {
 protected:
  // Three wraps of the longest ring, and some.
  static constexpr uint32_t kLength = 600;

  std::unique_ptr<Decoder> decoder(const ModelDesc& desc) {
    return std::make_unique<Decoder>(desc, *model.pack, kernels(available_isas().back()), pool,
                                     DecoderOptions{.context = kRingContext, .kv = std::get<1>(GetParam())},
                                     test::unqualified());
  }
  // Runs tokens `from` .. `to` - 1 in calls of `piece`, and keeps their logits in `logits`.
  void run(Decoder& on, uint32_t from, uint32_t to, uint32_t piece, std::vector<float>& logits) const {
    for (; from < to; from += piece) {
      const auto some = std::span(tokens).subspan(from, std::min(piece, to - from));
      on.forward_all(some, from, [&](uint32_t position, const float* row) {
        std::copy_n(row, on.desc().vocab, logits.begin() + static_cast<ptrdiff_t>(position * on.desc().vocab));
      });
    }
  }
  std::vector<float> room() const { return std::vector<float>(size_t{kLength} * model.desc.vocab, 0.0f); }
  bool same_logits(const std::vector<float>& a, const std::vector<float>& b, uint32_t end = kLength) const {
    return std::memcmp(a.data(), b.data(), size_t{end} * model.desc.vocab * sizeof(float)) == 0;
  }
  // All that is read from position `end` on, in one decoder as in the other.
  static bool same_states(const Decoder& a, const Decoder& b, const ModelDesc& truth, uint32_t end) {
    for (const StateSpec& s : truth.states) {
      const StateRows &x = a.state(s.name), &y = b.state(s.name);
      const uint32_t rows = end / s.ratio;
      for (uint32_t i = s.reach == 0 || rows < s.reach ? 0 : rows - s.reach + 1; i < rows; ++i)
        if (std::memcmp(x.at(i), y.at(i), x.row_bytes()) != 0) return false;
    }
    return true;
  }
  // The first piece moves the passes of 128 against the entries and wraps.
  bool wide_passes_are_right(const ModelDesc& desc) {
    for (const uint32_t first : {7u, 15u, 2u, 16u}) {
      const auto on = decoder(desc);
      std::vector<float> got = room();
      run(*on, 0, first, first, got);
      for (uint32_t done = first, end; done < kLength; done = end) {
        end = std::min(done + kWideRows, kLength);
        run(*on, done, end, kWideRows, got);
        if (!same_logits(got, want, end) || !same_states(*on, *truth, model.desc, end)) return false;
      }
    }
    return true;
  }

  // From several fronts back to the furthest position that is promised, and on again.
  bool returns_are_right(const ModelDesc& desc) {
    const auto on = decoder(desc);
    std::vector<float> got = room();
    run(*on, 0, 300, kWideRows, got);
    for (uint32_t front = 301; front < 320; ++front) {
      run(*on, front - 1, front, 1, got);
      uint32_t back = 1;
      while (on->restorable(back) != back) ++back;
      run(*on, back, back + 1, 1, got);
      if (!same_states(*on, *truth, model.desc, back + 1)) return false;
      run(*on, back + 1, front, 16, got);
      if (!same_logits(got, want, front)) return false;
    }
    return true;
  }

  Rings() {
    truth = decoder(positional);
    run(*truth, 0, kLength, 100, want);
  }

  const test::TestModel model{HfCheckpoint::open(std::string("tests/golden/deepseek_v4/") + std::get<0>(GetParam())),
                              true};
  const ModelDesc positional = no_rings(model.desc);
  const std::vector<int32_t> tokens = test::test_tokens(model.desc, kLength, 4);
  WorkerPool pool{test::pool_options(1)};
  std::unique_ptr<Decoder> truth;
  std::vector<float> want = room();
};
INSTANTIATE_TEST_SUITE_P(Models, Rings,
                         testing::Combine(testing::Values("mixed", "fine", "coarse"), testing::Values(KvFormat::f32)));
INSTANTIATE_TEST_SUITE_P(F16, Rings, testing::Values(std::tuple("coarse", KvFormat::f16)));

TEST_P(Rings, EveryWayGivesTheBitsOfRowsThatAreKeptForEver) {
  const ModelDesc exact = exact_rings(model.desc);
  EXPECT_TRUE(wide_passes_are_right(exact));
  const auto equal = [&](const ModelDesc& desc, uint32_t piece) {
    const auto on = decoder(desc);
    std::vector<float> got = room();
    run(*on, 0, kLength, piece, got);
    EXPECT_TRUE(same_logits(got, want)) << piece;
    EXPECT_TRUE(same_states(*on, *truth, model.desc, kLength)) << piece;
  };
  for (const uint32_t piece : {1u, 17u}) equal(exact, piece);
  for (const uint32_t piece : {16u, 129u}) equal(model.desc, piece);
}

// Proposals of every width, and a wrong pass of 128, before and behind every wrap of every ring.
TEST_P(Rings, WhatIsTakenBackLeavesNoTrace) {
  const ModelDesc desc = exact_rings(model.desc);
  std::set<uint32_t> edges;
  for (const StateSpec& s : desc.states)
    for (uint32_t wrap = s.ring; s.ring != 0 && wrap < kLength; wrap += s.ring)
      for (const uint32_t p : {wrap - 1, wrap, wrap + 1}) edges.insert(std::min(p, kLength - 1));
  ASSERT_GE(edges.size(), 9u);
  const std::vector<int32_t> wrong = test::test_tokens(desc, kWideRows, 9);
  const auto on = decoder(desc);
  std::vector<float> got = room();
  uint32_t done = 0;
  for (const uint32_t p : edges) {
    run(*on, done, p, kWideRows, got);
    for (uint32_t width = 1; width <= kNarrowRows + 1; ++width) {
      on->forward(std::span(wrong).first(width > kNarrowRows ? kWideRows : width), p, 0);
      ASSERT_EQ(on->restorable(p), p);
      ASSERT_TRUE(same_states(*on, *truth, desc, p)) << p << " width " << width;
      run(*on, p, p + 1, 1, got);
      ASSERT_TRUE(same_logits(got, want, p + 1)) << p << " width " << width;
    }
    done = p + 1;
  }
  run(*on, done, kLength, kWideRows, got);
  EXPECT_TRUE(same_logits(got, want));
  EXPECT_TRUE(same_states(*on, *truth, desc, kLength));
}

TEST_P(Rings, PromisesJustTheReturnsThatTheRowsAllow) {
  const ModelDesc desc = exact_rings(model.desc, 16);
  const auto on = decoder(desc);
  std::vector<float> got = room();
  EXPECT_EQ(on->restorable(5), 0u) << "nothing is there yet";
  for (const uint32_t front : {1u, 128u, 150u, 400u}) {
    run(*on, 0, front, kWideRows, got);
    for (uint32_t p = 0; p <= front; ++p) {
      bool kept = true;
      for (const StateSpec& s : desc.states)
        kept &= s.reach == 0 || front <= s.ring || p + s.ring + 1 >= front + s.reach;
      EXPECT_EQ(on->restorable(p), kept ? p : 0) << p << " of " << front;
    }
    EXPECT_EQ(on->restorable(front + 1), 0u);
  }
  EXPECT_EQ(on->restorable(400 - kWideRows - 16), 400 - kWideRows - 16);
  EXPECT_EQ(on->restorable(400 - kWideRows - 17), 0u);
  EXPECT_THROW(on->forward(std::span(tokens).first(3), 400 - kWideRows - 17, 1), Error);
  EXPECT_THROW(on->kv_hash(400 - kWideRows - 17), Error);
  EXPECT_TRUE(returns_are_right(desc));
  // Without rings everything is promised.
  EXPECT_EQ(truth->restorable(1), 1u);
}

// Mutants: every ring in turn one row shorter than its rows are read, then one that is long enough for a pass but
// promises one position too many.
TEST_P(Rings, OneRowTooFewIsCaught) {
  for (const StateSpec& s : model.desc.states) {
    if (s.reach == 0) continue;
    EXPECT_FALSE(wide_passes_are_right(one_row_short(model.desc, s.name))) << s.name;
    EXPECT_FALSE(returns_are_right(one_row_short(model.desc, s.name, 16))) << s.name;
  }
}

TEST_P(Rings, HashesSeeWhatALaterPassCanSee) {
  const auto once = decoder(model.desc), again = decoder(model.desc);
  std::vector<float> got = room();
  run(*once, 0, kLength, kWideRows, got);
  // Another text before, and a return.
  again->forward(test::test_tokens(model.desc, 700, 8), 0, 0);
  run(*again, 0, 590, 33, got);
  again->forward(test::test_tokens(model.desc, 12, 8), 590, 0);
  run(*again, 590, kLength, 1, got);
  EXPECT_EQ(once->kv_hash(kLength), again->kv_hash(kLength));
  EXPECT_EQ(once->kv_hash(500), again->kv_hash(500));
  const uint64_t hash = once->kv_hash(kLength);
  for (const StateSpec& s : model.desc.states) {
    const uint32_t rows = kLength / s.ratio;
    const StateRows& state = once->state(s.name);
    state.at(rows - 1)[state.row_bytes() - 1] ^= 1;
    EXPECT_NE(once->kv_hash(kLength), hash) << s.name;
    state.at(rows - 1)[state.row_bytes() - 1] ^= 1;
    if (s.reach == 0) continue;
    state.at(rows - s.reach)[0] ^= 1;
    EXPECT_EQ(once->kv_hash(kLength), hash) << s.name << ": no later pass reads this row";
  }
}

// Turns of a conversation: what is kept, and that the answers are those of a decoder that never saw anything else.
TEST_P(Rings, ASessionReturnsWhereTheRowsAre) {
  const auto on = decoder(model.desc);
  Session session(*on);
  const auto answer = [&](Session& s, uint32_t n) {
    while (n-- > 0) {
      const uint32_t cached = s.restorable(s.cached_tokens());
      const float* logits = s.decoder().forward(s.tokens().subspan(cached), cached, 1);
      const int32_t token = static_cast<int32_t>(std::max_element(logits, logits + model.desc.vocab) - logits);
      s.commit({&token, 1}, s.committed_tokens());
    }
    return std::vector<int32_t>(s.output().begin(), s.output().end());
  };
  const auto turn = [&](uint32_t common, uint32_t more, uint32_t kept) {
    std::vector<int32_t> prompt(session.tokens().begin(), session.tokens().begin() + common);
    const std::vector<int32_t> rest = test::test_tokens(model.desc, more, 100 + common);
    prompt.insert(prompt.end(), rest.begin(), rest.end());
    EXPECT_EQ(session.begin(prompt, true), kept) << common;
    const auto fresh = decoder(model.desc);
    Session cold(*fresh);
    cold.begin(prompt, false);
    EXPECT_EQ(answer(session, 40), answer(cold, 40)) << common;
    EXPECT_EQ(session.state_hash(), cold.state_hash()) << common;
  };
  turn(0, 400, 0);
  turn(439, 50, 439);         // all that has rows
  turn(520, 30, 520);         // the last tokens of the answer are others
  turn(590 - 256, 100, 334);  // as far back as is promised for every ring: 590 tokens, 589 of them with rows
  turn(100, 20, 0);           // further
  EXPECT_EQ(session.restorable(100), 100u) << "a short text is all there";
}

TEST(RingRows, AreWideEnoughAndRoundedToRunsOfTheirReach) {
  EXPECT_EQ(ring_rows(128), 384u);
  EXPECT_EQ(ring_rows(8), 264u);
  EXPECT_EQ(ring_rows(1), 256u);
  EXPECT_EQ(ring_rows(UINT32_MAX), (uint64_t{UINT32_MAX} + 255 + 127) / 128 * 128);
  for (uint32_t reach = 1; reach < 1000; ++reach) EXPECT_GE(ring_rows(reach), reach - 1 + kWideRows + kReturnRows);
}

TEST(RingRows, TakeNoPartInTheGrowthAndAreCounted) {
  const test::TestModel model(HfCheckpoint::open("tests/golden/deepseek_v4/mixed"), true);
  for (const KvFormat kv : {KvFormat::f32, KvFormat::f16}) {
    uint64_t fixed = 0, growing = 0;
    for (const StateSpec& s : model.desc.states) {
      const bool pooled = s.name.ends_with("_rows");  // of a compressor or an indexer
      const uint64_t row = uint64_t{s.width} * (pooled || kv == KvFormat::f32 ? 4 : 2);
      (s.reach != 0 ? fixed : growing) += row * (s.reach != 0 ? ring_rows(s.reach) : kSlots / s.ratio);
    }
    EXPECT_EQ(kv_bytes(model.desc, kv, 0), fixed);
    EXPECT_EQ(kv_bytes(model.desc, kv, 1), fixed + growing);
    EXPECT_EQ(kv_bytes(model.desc, kv, 12800), fixed + 100 * growing);
  }
  // No ring where it would be longer than the text.
  ModelDesc d = model.desc;
  d.context = 200;
  EXPECT_EQ(kv_bytes(d, KvFormat::f32, 0), 0u);
}

}  // namespace
}  // namespace stet
