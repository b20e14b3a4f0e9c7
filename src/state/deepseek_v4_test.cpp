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

DecoderOptions how(KvFormat kv, ReplayMode mode = ReplayMode::replayed, uint32_t prompt_rows = kWideRows) {
  return {256, kv, mode, prompt_rows};
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

// The largest distance of logits from those of a golden file, at the positions that it has.
double worst_error(const test::DeepseekV4Golden& m, const std::string& file, const std::vector<float>& logits) {
  const auto positions = m.record["positions"].get<std::vector<size_t>>();
  const size_t vocab = m.model.desc.vocab;
  const std::vector<double> golden = test::last_elements<double>(file, positions.size() * vocab);
  double worst = 0;
  for (size_t i = 0; i < positions.size(); ++i)
    for (size_t t = 0; t < vocab; ++t) {
      const double error = std::abs(static_cast<double>(logits[positions[i] * vocab + t]) - golden[i * vocab + t]);
      if (std::isnan(error)) return error;
      worst = std::max(worst, error);
    }
  return worst;
}

class DeepseekV4 : public testing::TestWithParam<std::tuple<const char*, KvFormat>> {};
INSTANTIATE_TEST_SUITE_P(Golden, DeepseekV4,
                         testing::Combine(testing::Values("mixed", "fine", "coarse"),
                                          testing::Values(KvFormat::f32, KvFormat::f16)));

TEST_P(DeepseekV4, LogitsAreWithinTheToleranceOfTheGolden) {
  const auto& [name, kv] = GetParam();
  const test::DeepseekV4Golden m(name);
  const Trace r = trace_of(m, Isa::scalar, 1, how(kv), m.tokens.size());
  const auto error_over = [&, id = std::string(name)](const std::string& file, const std::string& tolerance) {
    const double error = worst_error(m, test::kDeepseekV4Goldens + id + "/" + file, r.logits),
                 bound = m.record["tolerance"][tolerance].get<double>();
    std::printf("    %s: error %.3g, %.2f of the tolerance %s\n", id.c_str(), error, error / bound, tolerance.c_str());
    return error / bound;
  };
  if (kv == KvFormat::f32) {
    EXPECT_LE(error_over("logits.npy", "f32"), 1.0);
    return;
  }
  // tools/oracle/deepseek_v4/cache_f16.py: with these roundings, and as far from none as they explain, and no nearer.
  EXPECT_LE(error_over("logits_kv_f16.npy", "kv_f16"), 1.0);
  EXPECT_LE(error_over("logits.npy", "f16_of_f32"), 1.0);
  EXPECT_GE(error_over("logits.npy", "f32"), 2.0);
}

// FP8 and packed FP4, dequantised.
TEST(DeepseekV4Published, LogitsOfModeF32AreWithinTheToleranceOfTheGolden) {
  const test::DeepseekV4Golden m("full_blocks");
  const Trace r = trace_of(m, available_isas().back(), 1, how(KvFormat::f32), m.tokens.size());
  EXPECT_LE(worst_error(m, test::kDeepseekV4Goldens + "full_blocks/logits.npy", r.logits),
            m.record["tolerance"]["f32"].get<double>());
}

// Every model in every mode, and with either cache: no invariance may depend on what is rounded.
struct Numbers {
  const char* activations;
  KvFormat kv;
};

class DeepseekV4Ways : public testing::TestWithParam<std::tuple<const char*, Numbers>> {
 protected:
  KvFormat kv() const { return std::get<1>(GetParam()).kv; }
  test::DeepseekV4Golden golden() const {
    return test::DeepseekV4Golden(std::get<0>(GetParam()), std::get<1>(GetParam()).activations);
  }
};
INSTANTIATE_TEST_SUITE_P(Golden, DeepseekV4Ways,
                         testing::Combine(testing::Values("mixed", "fine", "coarse"),
                                          testing::Values(Numbers{"f32", KvFormat::f32}, Numbers{"f32", KvFormat::f16},
                                                          Numbers{"checkpoint", KvFormat::fp8})),
                         [](const auto& instance) {
                           const Numbers& numbers = std::get<1>(instance.param);
                           return fmt::format("{}_{}_{}", std::get<0>(instance.param), numbers.activations,
                                              numbers.kv == KvFormat::f16   ? "f16"
                                              : numbers.kv == KvFormat::fp8 ? "fp8"
                                                                            : "f32");
                         });

// Pieces, widths, threads, modes and instruction sets, each against the scalar reference run eagerly token by token.
TEST_P(DeepseekV4Ways, EveryWayGivesTheSameBits) {
  const test::DeepseekV4Golden m = golden();
  const Trace want = trace_of(m, Isa::scalar, 1, how(kv(), ReplayMode::eager), 1);
  for (const unsigned piece : {1u, 2u, 3u, 5u, 7u, 16u, 17u, 33u, 60u}) {
    const ReplayMode mode = piece % 3 == 0   ? ReplayMode::recorded
                            : piece % 3 == 1 ? ReplayMode::replayed
                                             : ReplayMode::eager;
    expect_equal(trace_of(m, Isa::scalar, 1 + static_cast<unsigned>(piece % 3), how(kv(), mode), piece), want,
                 fmt::format("scalar, pieces of {}", piece));
  }
  for (const Isa isa : available_isas())
    for (const uint32_t rows : {1u, 8u, 16u, 128u})
      expect_equal(trace_of(m, isa, 2, how(kv(), ReplayMode::replayed, rows), m.tokens.size()), want,
                   fmt::format("{} passes of {}", isa_name(isa), rows));
}

// Rows of tokens that are taken back, wherever a window or an entry was just open, leave no trace.
TEST_P(DeepseekV4Ways, RolledBackRowsLeaveNoTrace) {
  const test::DeepseekV4Golden m = golden();
  const Trace want = trace_of(m, Isa::scalar, 1, how(kv(), ReplayMode::eager), 1);
  WorkerPool pool(test::pool_options(2));
  Decoder decoder(m.model.desc, *m.model.pack, kernels(Isa::scalar), pool, how(kv()), test::unqualified());
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
  Decoder decoder(m.model.desc, *m.model.pack, kernels(available_isas().back()), pool, how(kv()));
  EXPECT_EQ(decoder.life(), LifeState::armed);
}

// What the fp8 cache holds it gives back bit by bit.
TEST(DeepseekV4State, RowsInFp8LoseNothing) {
  for (const char* name : {"mixed", "fine", "coarse"}) {
    const test::DeepseekV4Golden m(name, "checkpoint");
    const Trace want = trace_of(m, Isa::scalar, 1, how(KvFormat::f32), 7);
    const Trace got = trace_of(m, Isa::scalar, 1, how(KvFormat::fp8), 7);
    EXPECT_EQ(std::memcmp(got.logits.data(), want.logits.data(), want.logits.size() * sizeof(float)), 0) << name;
  }
  const test::DeepseekV4Golden m("fine", "f32");
  EXPECT_THROW(plan_state(m.model.desc, KvFormat::fp8), Error);
}

TEST(DeepseekV4State, OtherCacheFormatsAreRefusedByName) {
  const test::DeepseekV4Golden m("fine");
  WorkerPool pool(test::pool_options(1));
  try {
    Decoder decoder(m.model.desc, *m.model.pack, kernels(Isa::scalar), pool, how(KvFormat::q8), test::unqualified());
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUnsupported);
    EXPECT_NE(std::string(e.what()).find("--kv f16"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace stet
