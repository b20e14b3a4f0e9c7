#include "state/decoder.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "state/test_model.h"

namespace stet {
namespace {

struct Result {
  std::vector<float> logits;
  uint64_t kv;
};

Result run_all(const test::TestModel& m, Isa isa, unsigned threads, const DecoderOptions& options, uint32_t tokens) {
  WorkerPool pool(test::pool_options(threads));
  // Here everything is compared with one reference run; what arming compares has its own test.
  Decoder decoder(m.desc, *m.pack, kernels(isa), pool, options, {.qualify = Qualify::skip, .cache_dir = "", .progress = nullptr});
  Result r;
  decoder.forward_all(test::test_tokens(m.desc, tokens), 0, [&](uint32_t, const float* logits) {
    r.logits.insert(r.logits.end(), logits, logits + m.desc.vocab);
  });
  r.kv = decoder.kv_hash(tokens);
  return r;
}

void expect_same(const Result& a, const Result& b, const std::string& what) {
  ASSERT_EQ(a.logits.size(), b.logits.size());
  EXPECT_EQ(std::memcmp(a.logits.data(), b.logits.data(), a.logits.size() * sizeof(float)), 0) << what;
  EXPECT_EQ(a.kv, b.kv) << what;
}

class DecoderTest : public testing::TestWithParam<std::tuple<const char*, KvFormat>> {};

// Width, chunking, replay mode, threads and instruction set, each against the scalar reference run eagerly row by row.
TEST_P(DecoderTest, EveryWayGivesTheSameBits) {
  const auto [name, kv] = GetParam();
  const test::TestModel m(name);
  const uint32_t tokens = 150;
  DecoderOptions base{256, kv, ReplayMode::eager, 1};
  const Result want = run_all(m, Isa::scalar, 1, base, tokens);
  for (Isa isa : available_isas())
    for (ReplayMode mode : {ReplayMode::eager, ReplayMode::recorded, ReplayMode::replayed})
      for (uint32_t rows : {1u, 3u, 8u, 16u, 17u, 128u}) {
        if (isa == Isa::scalar && rows != 16) continue;
        const unsigned threads = 1 + rows % 3;
        const std::string what = fmt::format("{} mode {} rows {} threads {}", isa_name(isa), static_cast<int>(mode), rows, threads);
        expect_same(run_all(m, isa, threads, {256, kv, mode, rows}, tokens), want, what);
      }
}

INSTANTIATE_TEST_SUITE_P(Models, DecoderTest,
                         testing::Combine(testing::Values("synth:tiny:q4_0", "synth:tiny-gqa:q8_0", "synth:tiny-gqa:f16"),
                                          testing::Values(KvFormat::f16, KvFormat::f32)));
INSTANTIATE_TEST_SUITE_P(Q8, DecoderTest, testing::Combine(testing::Values("synth:tiny-gqa:q4_1"), testing::Values(KvFormat::q8)));

// forward() with several logit rows, after a rollback: rows written by rejected tokens leave no trace.
TEST(Decoder, RolledBackRowsLeaveNoTrace) {
  const test::TestModel m("synth:tiny-gqa:q4_0");
  WorkerPool pool(test::pool_options(2));
  const auto tokens = test::test_tokens(m.desc, 140), wrong = test::test_tokens(m.desc, 16, 99);
  Decoder clean(m.desc, *m.pack, kernels(available_isas().back()), pool, {256});
  Decoder dirty(m.desc, *m.pack, kernels(available_isas().back()), pool, {256});
  const auto prompt = std::span(tokens).first(120);
  clean.forward(prompt, 0, 1);
  dirty.forward(prompt, 0, 1);
  for (uint32_t p = 120; p < 140; ++p) {
    dirty.forward(std::span(wrong).first(p % 16 + 1), p, 1);
    const auto one = std::span(tokens).subspan(p, 1);
    const float* got = dirty.forward(one, p, 1);
    const float* want = clean.forward(one, p, 1);
    ASSERT_EQ(std::memcmp(got, want, m.desc.vocab * sizeof(float)), 0) << p;
  }
  EXPECT_EQ(clean.kv_hash(140), dirty.kv_hash(140));
}

TEST(Decoder, AFullContextSaysSo) {
  const test::TestModel m("synth:tiny:f32");
  WorkerPool pool(test::pool_options(1));
  Decoder decoder(m.desc, *m.pack, kernels(Isa::scalar), pool, {8});
  const auto tokens = test::test_tokens(m.desc, 9);
  EXPECT_NO_THROW(decoder.forward(std::span(tokens).first(8), 0, 1));
  EXPECT_THROW(decoder.forward(tokens, 0, 1), Error);
  EXPECT_THROW(decoder.forward(std::span(tokens).first(1), 8, 1), Error);
}

}  // namespace
}  // namespace stet
