// Tiny DeepSeek V4 models (tests/golden/deepseek_v4) against the logits of transformers in binary64, and against
// themselves in pieces.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "state/deepseek_v4_golden.h"
#include "state/session.h"

namespace stet {
namespace {

DecoderOptions how(ReplayMode mode = ReplayMode::replayed, uint32_t prompt_rows = kWideRows) {
  return {256, KvFormat::f32, mode, prompt_rows};
}

struct Trace {
  std::vector<float> logits;
  uint64_t state = 0;
};

// All tokens, in calls of `piece`.
Trace trace_of(const test::DeepseekV4Golden& m, Isa isa, unsigned threads, const DecoderOptions& settings,
               size_t piece) {
  WorkerPool pool(test::pool_options(threads));
  Decoder decoder(m.model.desc, *m.model.pack, kernels(isa), pool, settings, test::unqualified());
  Trace r;
  for (size_t done = 0; done < m.tokens.size(); done += piece) {
    const auto some = std::span(m.tokens).subspan(done, std::min(piece, m.tokens.size() - done));
    decoder.forward_all(some, static_cast<uint32_t>(done), [&](uint32_t, const float* logits) {
      r.logits.insert(r.logits.end(), logits, logits + m.model.desc.vocab);
    });
  }
  r.state = decoder.kv_hash(static_cast<uint32_t>(m.tokens.size()));
  return r;
}

void expect_equal(const Trace& got, const Trace& want, const std::string& what) {
  ASSERT_EQ(got.logits.size(), want.logits.size()) << what;
  EXPECT_EQ(std::memcmp(got.logits.data(), want.logits.data(), want.logits.size() * sizeof(float)), 0) << what;
  EXPECT_EQ(got.state, want.state) << what;
}

class DeepseekV4 : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Golden, DeepseekV4, testing::Values("mixed", "fine", "coarse"));

TEST_P(DeepseekV4, LogitsAreWithinTheToleranceOfTheGolden) {
  const test::DeepseekV4Golden m(GetParam());
  const Trace r = trace_of(m, Isa::scalar, 1, how(), m.tokens.size());
  const auto positions = m.record["positions"].get<std::vector<size_t>>();
  const double tolerance = m.record["tolerance"]["f32"].get<double>();
  const size_t vocab = m.model.desc.vocab;
  const std::vector<double> golden =
      test::last_elements<double>(test::kDeepseekV4Goldens + GetParam() + "/logits.npy", positions.size() * vocab);
  double worst = 0;
  for (size_t i = 0; i < positions.size(); ++i)
    for (size_t t = 0; t < vocab; ++t) {
      const double error = std::abs(static_cast<double>(r.logits[positions[i] * vocab + t]) - golden[i * vocab + t]);
      ASSERT_FALSE(std::isnan(error));
      worst = std::max(worst, error);
    }
  EXPECT_LE(worst, tolerance);
  std::printf("    %s: error %.3g, %.2f of the tolerance\n", GetParam(), worst, worst / tolerance);
}

// Every model in every mode: no invariance may depend on what is rounded.
class DeepseekV4Ways : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  test::DeepseekV4Golden golden() const {
    return test::DeepseekV4Golden(std::get<0>(GetParam()), std::get<1>(GetParam()));
  }
};
INSTANTIATE_TEST_SUITE_P(Golden, DeepseekV4Ways,
                         testing::Combine(testing::Values("mixed", "fine", "coarse"),
                                          testing::Values("f32", "checkpoint")),
                         [](const auto& instance) {
                           return fmt::format("{}_{}", std::get<0>(instance.param), std::get<1>(instance.param));
                         });

// Pieces, widths, threads, modes and instruction sets, each against the scalar reference run eagerly token by token.
TEST_P(DeepseekV4Ways, EveryWayGivesTheSameBits) {
  const test::DeepseekV4Golden m = golden();
  const Trace want = trace_of(m, Isa::scalar, 1, how(ReplayMode::eager), 1);
  for (const unsigned piece : {1u, 2u, 3u, 5u, 7u, 16u, 17u, 33u, 60u}) {
    const ReplayMode mode = piece % 3 == 0   ? ReplayMode::recorded
                            : piece % 3 == 1 ? ReplayMode::replayed
                                             : ReplayMode::eager;
    expect_equal(trace_of(m, Isa::scalar, 1 + static_cast<unsigned>(piece % 3), how(mode), piece), want,
                 fmt::format("scalar, pieces of {}", piece));
  }
  for (const Isa isa : available_isas())
    for (const uint32_t rows : {1u, 8u, 16u, 128u})
      expect_equal(trace_of(m, isa, 2, how(ReplayMode::replayed, rows), m.tokens.size()), want,
                   fmt::format("{} passes of {}", isa_name(isa), rows));
}

// Rows of tokens that are taken back, wherever a window or an entry was just open, leave no trace.
TEST_P(DeepseekV4Ways, RolledBackRowsLeaveNoTrace) {
  const test::DeepseekV4Golden m = golden();
  const Trace want = trace_of(m, Isa::scalar, 1, how(ReplayMode::eager), 1);
  WorkerPool pool(test::pool_options(2));
  Decoder decoder(m.model.desc, *m.model.pack, kernels(Isa::scalar), pool, how(), test::unqualified());
  const uint32_t n = static_cast<uint32_t>(m.tokens.size());
  const std::vector<int32_t> wrong = test::test_tokens(m.model.desc, 16, 9);
  Trace got;
  for (uint32_t t = 0; t < n; ++t) {
    decoder.forward(std::span(wrong).first(1 + t % 16), t, 0);
    const float* logits = decoder.forward(std::span(m.tokens).subspan(t, 1), t, 1);
    got.logits.insert(got.logits.end(), logits, logits + m.model.desc.vocab);
  }
  got.state = decoder.kv_hash(n);
  expect_equal(got, want, "proposals of 1 to 16 rows before every token");
  // Back to the middle of the text, across several windows.
  for (const uint32_t back : {n / 2 + 1, 5u, 1u}) {
    got.logits.assign(want.logits.begin(), want.logits.begin() + back * m.model.desc.vocab);
    decoder.forward_all(std::span(m.tokens).subspan(back), back, [&](uint32_t, const float* logits) {
      got.logits.insert(got.logits.end(), logits, logits + m.model.desc.vocab);
    });
    got.state = decoder.kv_hash(n);
    expect_equal(got, want, fmt::format("back to {}", back));
  }
}

TEST_P(DeepseekV4Ways, QualifiesOnThisMachine) {
  const test::DeepseekV4Golden m = golden();
  WorkerPool pool(test::pool_options(1));
  Decoder decoder(m.model.desc, *m.model.pack, kernels(available_isas().back()), pool, how());
  EXPECT_EQ(decoder.life(), LifeState::armed);
}

TEST(DeepseekV4State, OtherCacheFormatsAreRefusedByName) {
  const test::DeepseekV4Golden m("fine");
  WorkerPool pool(test::pool_options(1));
  for (const KvFormat kv : {KvFormat::f16, KvFormat::q8}) {
    try {
      Decoder decoder(m.model.desc, *m.model.pack, kernels(Isa::scalar), pool, {64, kv, ReplayMode::eager, 1},
                      test::unqualified());
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kUnsupported);
      EXPECT_NE(std::string(e.what()).find("--kv f32"), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace stet
