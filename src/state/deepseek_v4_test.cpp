// Tiny DeepSeek V4 models (tests/golden/deepseek_v4) against the logits of transformers in binary64, and against
// themselves in pieces.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/strict_json.h"
#include "state/session.h"
#include "state/test_model.h"
#include "weights/hf/checkpoint.h"

namespace stet {
namespace {

const std::string kFolder = "tests/golden/deepseek_v4/";

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The elements of a binary64 NumPy file: they stand at its end.
std::vector<double> last_doubles(const std::string& path, size_t n) {
  const std::string bytes = bytes_of(path);
  std::vector<double> x(n);
  STET_CHECK(bytes.size() > n * sizeof(double));
  std::memcpy(x.data(), bytes.data() + bytes.size() - n * sizeof(double), n * sizeof(double));
  return x;
}

struct GoldenModel {
  explicit GoldenModel(const std::string& name) : model(HfCheckpoint::open(kFolder + name), true) {
    record = parse_json(bytes_of(kFolder + name + "/golden.json"), name);
    tokens = record["tokens"].get<std::vector<int32_t>>();
  }
  test::TestModel model;
  Json record;
  std::vector<int32_t> tokens;
};

DecoderOptions how(ReplayMode mode = ReplayMode::replayed, uint32_t prompt_rows = kWideRows) {
  return {256, KvFormat::f32, mode, prompt_rows};
}

struct Trace {
  std::vector<float> logits;
  uint64_t state = 0;
};

// All tokens, in calls of `piece`.
Trace trace_of(const GoldenModel& m, Isa isa, unsigned threads, const DecoderOptions& settings, size_t piece) {
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

// Also of the model in the published types, FP8 and packed FP4, which is wide and slow.
class DeepseekV4Logits : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Golden, DeepseekV4Logits, testing::Values("mixed", "fine", "coarse", "full_blocks"));

TEST_P(DeepseekV4Logits, AreWithinTheToleranceOfTheGolden) {
  const GoldenModel m(GetParam());
  const Trace r = trace_of(m, Isa::scalar, 1, how(), m.tokens.size());
  const auto positions = m.record["positions"].get<std::vector<size_t>>();
  const double tolerance = m.record["tolerance"]["f32"].get<double>();
  const size_t vocab = m.model.desc.vocab;
  const std::vector<double> golden = last_doubles(kFolder + GetParam() + "/logits.npy", positions.size() * vocab);
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

// Pieces, widths, threads, modes and instruction sets, each against the scalar reference run eagerly token by token.
TEST_P(DeepseekV4, EveryWayGivesTheSameBits) {
  const GoldenModel m(GetParam());
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
TEST_P(DeepseekV4, RolledBackRowsLeaveNoTrace) {
  const GoldenModel m(GetParam());
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

TEST_P(DeepseekV4, QualifiesOnThisMachine) {
  const GoldenModel m(GetParam());
  WorkerPool pool(test::pool_options(1));
  Decoder decoder(m.model.desc, *m.model.pack, kernels(available_isas().back()), pool, how());
  EXPECT_EQ(decoder.life(), LifeState::armed);
}

TEST(DeepseekV4State, OtherCacheFormatsAreRefusedByName) {
  const GoldenModel m("fine");
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
