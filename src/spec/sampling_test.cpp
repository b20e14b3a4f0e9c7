#include "spec/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <new>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/sanitizer.h"
#include "spec/sampling_test_util.h"

// Counts every allocation of this program; the array and aligned forms end here too or are not used by the sampler. Sanitizers bring
// their own.
static size_t allocations = 0;
#ifndef STET_UNDER_SANITIZER
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }
#endif

namespace stet {
namespace {

using testing::HasSubstr;

int32_t sample(Isa isa, const std::vector<float>& row, const SamplingParams& params, uint64_t position = 7) {
  Sampler sampler(kernels(isa), params, static_cast<uint32_t>(row.size()));
  return sampler.sample(row.data(), {}, {}, position).token;
}

// Every combination of a few values of each parameter, penalties and bias included.
std::vector<SamplingParams> parameter_grid() {
  std::vector<SamplingParams> grid;
  for (float temperature : {0.0f, 0.01f, 0.7f, 1.0f, 1.7f})
    for (uint32_t top_k : {0u, 1u, 20u, 5000u})
      for (float top_p : {1.0f, 0.3f, 0.95f})
        for (float min_p : {0.0f, 0.05f})
          for (int penalties = 0; penalties < 3; ++penalties) {
            SamplingParams p = {.temperature = temperature, .top_k = top_k, .top_p = top_p, .min_p = min_p};
            p.seed = 0x9e3779b97f4a7c15ull * (grid.size() + 1);
            if (penalties == 1) p.repetition_penalty = 1.3f;
            if (penalties == 2) {
              p.repetition_penalty = 0.8f, p.presence_penalty = 0.5f, p.frequency_penalty = 0.25f;
              p.logit_bias = {{0, 1.5f}, {17, -1000.0f}, {40, 3.25f}};
            }
            grid.push_back(p);
          }
  return grid;
}

TEST(Sampler, EqualsThePlainFunction) {
  const std::vector<int32_t> prompt = {1, 2, 2, 30, 299}, output = {2, 5, 5, 5, 40, 41};
  for (float step : {0.0f, 0.25f}) {
    uint32_t i = 0;
    for (const SamplingParams& p : parameter_grid()) {
      const auto row = test::row_of_logits(300, 2, ++i, step);
      for (uint64_t position : {uint64_t{6}, (uint64_t{1} << 32) + i}) {
        const int32_t want = test::plain_sample(row, prompt, output, p, position);
        for (Isa isa : available_isas()) {
          Sampler sampler(kernels(isa), p, 300);
          const auto before = row;
          const SampleResult got = sampler.sample(row.data(), prompt, output, position);
          ASSERT_EQ(got.token, want) << isa_name(isa) << " case " << i << " position " << position;
          EXPECT_EQ(got.first_bad, 300u);
          EXPECT_EQ(row, before);
        }
      }
    }
  }
}

// The rows of a verify pass, with drafts that are refused halfway: one sampler, reused, equals a fresh one for every
// row.
TEST(Sampler, CountsTheDraftPrefixOfEachRow) {
  const uint32_t vocab = 60;
  const std::vector<int32_t> prompt = {1, 2, 3};
  const SamplingParams p = {
      .temperature = 0.9f, .repetition_penalty = 1.5f, .presence_penalty = 0.7f, .frequency_penalty = 0.4f};
  for (Isa isa : available_isas()) {
    Sampler sampler(kernels(isa), p, vocab);
    std::vector<int32_t> output;
    bool prefix_mattered = false;
    for (uint32_t cycle = 0; cycle < 60; ++cycle) {
      std::vector<int32_t> drafted = output;
      for (uint32_t row_index = 0; row_index < 4; ++row_index) {
        const auto row = test::row_of_logits(vocab, 1, cycle * 4 + row_index);
        const uint64_t position = prompt.size() + drafted.size();
        const int32_t want = test::plain_sample(row, prompt, drafted, p, position);
        ASSERT_EQ(sampler.sample(row.data(), prompt, drafted, position).token, want) << cycle;
        prefix_mattered |= test::plain_sample(row, prompt, output, p, position) != want;
        if (row_index == 0) output.push_back(want);
        drafted.push_back(static_cast<int32_t>((cycle * 7 + row_index) % vocab));
      }
    }
    EXPECT_TRUE(prefix_mattered);
  }
}

// 200,000 draws against the softmax: with 9 degrees of freedom chi-square exceeds 27.9 once in a thousand seeds; this
// one is fixed.
TEST(Sampler, DrawsFromTheSoftmax) {
  const std::vector<float> row = {0.0f, 1.0f, 2.0f, -1.0f, 0.5f, 0.5f, -3.0f, 1.5f, -0.25f, 2.25f};
  const float temperature = 1.25f;
  const int draws = 200000;
  for (bool listed : {false, true}) {  // through the whole row and through a list of candidates, with different seeds
    SamplingParams p = {.temperature = temperature, .min_p = listed ? 1e-6f : 0.0f, .seed = listed ? 11u : 10u};
    Sampler sampler(kernels(available_isas().back()), p, 10);
    std::vector<double> seen(10), want(10);
    for (int i = 0; i < draws; ++i) ++seen[static_cast<size_t>(sampler.sample(row.data(), {}, {}, i).token)];
    double total = 0, chi_square = 0;
    for (float l : row) total += std::exp(static_cast<double>(l / temperature));
    for (size_t i = 0; i < 10; ++i) {
      want[i] = draws * std::exp(static_cast<double>(row[i] / temperature)) / total;
      chi_square += (seen[i] - want[i]) * (seen[i] - want[i]) / want[i];
    }
    EXPECT_LT(chi_square, 27.9);
    EXPECT_GT(chi_square, 1.15);  // nor too good to be true, as often
  }
}

TEST(Sampler, TruncatedToOneIsGreedy) {
  for (uint32_t seed = 0; seed < 20; ++seed)
    for (Isa isa : available_isas()) {
      const auto row = test::row_of_logits(5000, 4, seed, seed % 2 ? 0.5f : 0.0f);
      const int32_t greedy = sample(isa, row, {});
      EXPECT_EQ(greedy, std::max_element(row.begin(), row.end()) - row.begin());
      EXPECT_EQ(sample(isa, row, {.temperature = 5.0f, .top_k = 1, .seed = seed}), greedy);
      EXPECT_EQ(sample(isa, row, {.temperature = 0.5f, .top_p = 1e-30f, .seed = seed}), greedy);
      if (seed % 2 == 0) {  // no equals
        EXPECT_EQ(sample(isa, row, {.temperature = 0.5f, .min_p = 1.0f, .seed = seed}), greedy);
        EXPECT_EQ(sample(isa, row, {.temperature = 1e-35f, .seed = seed}), greedy);
        EXPECT_EQ(sample(isa, row, {.temperature = 1e-35f, .top_k = 7, .top_p = 0.9f, .seed = seed}), greedy);
      }
    }
}

// Equal logits are all drawn, and where a token stands in the row matters to nothing but its own noise.
TEST(Sampler, EqualLogitsAreDrawnEquallyOften) {
  std::vector<float> row(6, -50.0f);
  row[1] = row[2] = row[4] = 3.0f;
  for (const SamplingParams& p :
       {SamplingParams{.temperature = 0.001f}, SamplingParams{.temperature = 0.001f, .min_p = 1.0f}}) {
    Sampler sampler(kernels(available_isas().back()), p, 6);
    std::map<int32_t, int> seen;
    for (uint64_t position = 0; position < 3000; ++position) ++seen[sampler.sample(row.data(), {}, {}, position).token];
    EXPECT_EQ(seen.size(), 3u);
    for (int32_t id : {1, 2, 4}) EXPECT_NEAR(seen[id], 1000, 5 * std::sqrt(3000.0 * 2 / 9)) << id;  // 5 sigma
  }
}

// Any permutation of a row permutes scores, except for the noise, which follows the id: with temperature 0.001 and a
// clear maximum the maximum is found wherever it stands.
TEST(Sampler, FindsTheMaximumWhereverItStands) {
  for (Isa isa : available_isas())
    for (uint32_t at = 0; at < 200; ++at) {
      auto row = test::row_of_logits(200, 1, 3);
      row[at] = 9.0f;
      ASSERT_EQ(sample(isa, row, {}), static_cast<int32_t>(at));
      ASSERT_EQ(sample(isa, row, {.temperature = 0.001f}), static_cast<int32_t>(at));
      ASSERT_EQ(sample(isa, row, {.temperature = 0.001f, .top_k = 3}), static_cast<int32_t>(at));
    }
}

TEST(Sampler, SeedAndPositionChangeTheDraw) {
  const std::vector<float> row(1000, 0.25f);  // all equal: only the noise decides
  const Isa isa = available_isas().back();
  std::set<int32_t> seeds, positions;
  for (uint32_t bit = 0; bit < 64; ++bit) {
    seeds.insert(sample(isa, row, {.temperature = 1, .seed = uint64_t{1} << bit}));
    positions.insert(sample(isa, row, {.temperature = 1}, uint64_t{1} << bit));
  }
  EXPECT_GT(seeds.size(), 55u);  // 62 expected
  EXPECT_GT(positions.size(), 55u);
  EXPECT_EQ(sample(isa, row, {.temperature = 1, .seed = 5}), sample(isa, row, {.temperature = 1, .seed = 5}));
}

TEST(Sampler, ALogitThatIsNotFiniteCommitsNothing) {
  for (Isa isa : available_isas())
    for (float bad : {__builtin_nanf(""), __builtin_inff(), -__builtin_inff()})
      for (const SamplingParams& p :
           {SamplingParams{}, SamplingParams{.temperature = 1}, SamplingParams{.temperature = 1, .top_k = 2},
            SamplingParams{.repetition_penalty = 2, .logit_bias = {{30, 1.0f}}}}) {
        auto row = test::row_of_logits(100, 1, 1);
        row[30] = bad, row[70] = bad;
        const std::vector<int32_t> prompt = {30};
        const SampleResult got = Sampler(kernels(isa), p, 100).sample(row.data(), prompt, {}, 0);
        EXPECT_FALSE(got.ok());
        EXPECT_EQ(got.token, -1);
        EXPECT_EQ(got.first_bad, 30u);
      }
}

// The suite above can fail: a table whose argmax prefers the highest id of equals, and one that skips a candidate.
TEST(Sampler, WrongTablesAreCaught) {
  const auto row = test::row_of_logits(300, 2, 1, 0.5f);
  Kernels wrong_tie = kernels(Isa::scalar);
  wrong_tie.sample.argmax = [](const float* logits, uint32_t n) {
    uint32_t best = 0;
    for (uint32_t i = 0; i < n; ++i) best = logits[i] >= logits[best] ? i : best;
    return Argmax{best, n};
  };
  EXPECT_NE(Sampler(wrong_tie, {}, 300).sample(row.data(), {}, {}, 0).token, test::plain_sample(row, {}, {}, {}, 0));
  Kernels wrong_list = kernels(Isa::scalar);
  wrong_list.sample.gumbel_list = [](const float* logits, const uint32_t* ids, uint32_t n, float max, float temperature,
                                     NoiseStream stream) {
    return kernels(Isa::scalar).sample.gumbel_list(logits + 1, ids + 1, n - 1, max, temperature, stream);
  };
  const SamplingParams p = {.temperature = 3.0f, .top_k = 4};
  int differ = 0;
  for (uint64_t position = 0; position < 50; ++position)
    differ += Sampler(wrong_list, p, 300).sample(row.data(), {}, {}, position).token !=
              test::plain_sample(row, {}, {}, p, position);
  EXPECT_GT(differ, 5);
}

TEST(Sampler, AllocatesNothingAfterTheFirstCall) {
#ifdef STET_UNDER_SANITIZER
  GTEST_SKIP() << "the sanitizer's allocator is not counted";
#endif
  const auto row = test::row_of_logits(5000, 3, 1), flat = test::row_of_logits(5000, 0.01f, 1);
  const std::vector<int32_t> prompt = {1, 2, 3};
  for (const SamplingParams& p : parameter_grid()) {
    Sampler sampler(kernels(available_isas().back()), p, 5000);
    std::vector<int32_t> output = {7};
    output.reserve(100);
    sampler.sample(row.data(), prompt, output, 0);
    const size_t before = allocations;
    for (int i = 0; i < 20; ++i) {
      output.push_back(i * 7);
      sampler.sample(i % 2 ? row.data() : flat.data(), prompt, output, static_cast<uint64_t>(i));
    }
    EXPECT_EQ(allocations, before);
  }
}

// 1080 tokens over the grid. Changes only with the numerics version (docs/numerics.md).
TEST(Sampler, GoldenDigest) {
  const std::vector<int32_t> prompt = {1, 2, 2, 30, 299, 1500};
  for (Isa isa : available_isas()) {
    std::vector<int32_t> tokens;
    for (const SamplingParams& p : parameter_grid()) {
      Sampler sampler(kernels(isa), p, 2003);
      std::vector<int32_t> output;
      for (uint64_t i = 0; i < 3; ++i) {
        const auto row = test::row_of_logits(2003, 2.5f, static_cast<uint32_t>(tokens.size()));
        output.push_back(sampler.sample(row.data(), prompt, output, prompt.size() + i).token);
        tokens.push_back(output.back());
      }
    }
    EXPECT_EQ(tokens.size(), 1080u);
    EXPECT_EQ(sha256_hex(tokens.data(), tokens.size() * sizeof(int32_t)),
              "58df6d5e3a076366dce7d43974462ca000bac6dc6d8df51367476dd54aebe629")
        << isa_name(isa);
  }
}

TEST(SamplingParams, RefusesWhatIsOutOfRangeByItsFlag) {
  const auto message = [](const SamplingParams& p) -> std::string {
    try {
      p.validate(100);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kUsage);
      return e.what();
    }
    return "accepted";
  };
  const float nan = __builtin_nanf(""), inf = __builtin_inff();
  EXPECT_EQ(message({}), "accepted");
  EXPECT_EQ(
      message({.temperature = 100, .top_k = 1u << 31, .top_p = 1e-30f, .min_p = 1, .logit_bias = {{99, 1000.0f}}}),
      "accepted");
  EXPECT_EQ(message({.temperature = -0.5f}), "--temperature is -0.5: choose a value from 0 to 100 (0 is greedy)");
  for (float v : {-1.0f, 101.0f, nan, inf}) EXPECT_THAT(message({.temperature = v}), HasSubstr("--temperature"));
  for (float v : {0.0f, -1.0f, 1.0001f, nan}) EXPECT_THAT(message({.top_p = v}), HasSubstr("--top-p"));
  for (float v : {-0.1f, 1.0001f, nan}) EXPECT_THAT(message({.min_p = v}), HasSubstr("--min-p"));
  for (float v : {0.0f, -1.0f, 1000.0f, nan})
    EXPECT_THAT(message({.repetition_penalty = v}), HasSubstr("--repetition-penalty"));
  for (float v : {-101.0f, 101.0f, nan}) EXPECT_THAT(message({.presence_penalty = v}), HasSubstr("--presence-penalty"));
  for (float v : {-101.0f, 101.0f, nan})
    EXPECT_THAT(message({.frequency_penalty = v}), HasSubstr("--frequency-penalty"));
  EXPECT_THAT(message({.logit_bias = {{100, 1.0f}}}), HasSubstr("token 100: the model's tokens are 0 to 99"));
  EXPECT_THAT(message({.logit_bias = {{-1, 1.0f}}}), HasSubstr("token -1"));
  for (float v : {-1001.0f, 1001.0f, nan, inf})
    EXPECT_THAT(message({.logit_bias = {{5, v}}}), HasSubstr("--logit-bias of token 5"));
  EXPECT_THROW(Sampler(kernels(Isa::scalar), {.temperature = -1}, 10), Error);
}

TEST(SamplingParams, DrawnSeedsDifferAndFitADouble) {
  std::set<uint64_t> seeds;
  for (int i = 0; i < 100; ++i) seeds.insert(draw_seed());
  EXPECT_EQ(seeds.size(), 100u);
  EXPECT_LT(*seeds.rbegin(), uint64_t{1} << 53);
}

}  // namespace
}  // namespace stet
