#include "kernels/sample/sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernels/kernels.h"
#include "kernels/kernels_test_util.h"
#include "kernels/sample/gumbel_ref.h"

namespace stet {
namespace {

using test::Fill;

const std::vector<uint32_t> kSizes = {1, 2, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 129, 1000, 4099};

// Logits as a model writes them: normal, of the given spread.
std::vector<float> make_logits(uint32_t n, float spread, uint32_t seed) {
  auto x = test::make_values(n, Fill::normal, seed);
  for (float& v : x) v *= spread;
  return x;
}

std::vector<uint32_t> make_words(uint32_t n, uint32_t seed) {
  std::mt19937 rng(seed);
  std::vector<uint32_t> words(n);
  for (uint32_t& w : words) w = static_cast<uint32_t>(rng());
  return words;
}

// log: z carries three roundings, the result two more and the series 2^-28: below 3 ulp of a result away from the join
// of two terms; at e != 0 the terms cancel to no less than ln(2) / 2.
TEST(Sample, LogIsAccurate) {
  double worst = 0;
  for (float x = 0x1p-126f; x < 0x1p127f; x *= 1.00137f) {
    const double want = std::log(static_cast<double>(x));
    worst = std::max(worst, std::abs(log_ref(x) - want) / std::abs(want));
  }
  for (int i = -100000; i <= 100000; ++i) {
    const float x = 1.0f + static_cast<float>(i) * 0x1p-18f;
    const double want = std::log(static_cast<double>(x));
    if (i != 0) worst = std::max(worst, std::abs(log_ref(x) - want) / std::abs(want));
  }
  EXPECT_LT(worst, 3 * 0x1p-23);
  EXPECT_EQ(bits_of_float(log_ref(1.0f)), 0u);
  EXPECT_FLOAT_EQ(log_ref(0x1p-126f), -87.336545f);
  EXPECT_FLOAT_EQ(log_ref(0x1.fffffep127f), 88.722839f);
}

// Words at both ends, around the switch of formulas at sqrt(1/2) and around one half, and many others.
std::vector<uint32_t> noise_words() {
  std::vector<uint32_t> words = make_words(300007, 5);
  for (uint32_t centre : {0u, 0x80000000u, 0xb504f334u, 0x5e2d58d8u /* E = 1 */, 0x10000u, 0xffff0000u})
    for (uint32_t d = 0; d < 4096; ++d) words.push_back(centre + d - 2048);
  return words;
}

TEST(Sample, NoiseIsAccurateAtBothEnds) {
  double worst_exponential = 0, worst_noise = 0;
  for (uint32_t r : noise_words()) {
    const long double u = (static_cast<long double>(r) + 0.5L) * 0x1p-32L;
    const long double w = (static_cast<long double>(~r) + 0.5L) * 0x1p-32L;
    const long double e = r < 0x80000000u ? -std::log(u) : -std::log1p(-w);
    const long double g = -std::log(e);
    worst_exponential = std::max(worst_exponential, static_cast<double>(std::abs((exponential_ref(r) - e) / e)));
    worst_noise =
        std::max(worst_noise, static_cast<double>(std::abs(gumbel_of_word_ref(r) - g) / std::max(1.0L, std::abs(g))));
  }
  EXPECT_LT(worst_exponential, 3 * 0x1p-23);
  EXPECT_LT(worst_noise, 5 * 0x1p-23);  // the error of E adds to that of its log
  EXPECT_FLOAT_EQ(gumbel_of_word_ref(0), -3.1299946f);
  EXPECT_FLOAT_EQ(gumbel_of_word_ref(0xffffffffu), 22.873857f);
  for (uint32_t r : noise_words()) ASSERT_LT(gumbel_of_word_ref(r), kGumbelBound);
}

TEST(Sample, NoiseBitsAreThoseOfTheReference) {
  const std::vector<uint32_t> words = noise_words();
  const uint32_t n = static_cast<uint32_t>(words.size());
  std::vector<float> want(n);
  for (uint32_t i = 0; i < n; ++i) want[i] = gumbel_of_word_ref(words[i]);
  for (Isa isa : available_isas()) {
    auto got = test::poisoned(n);
    kernels(isa).sample.gumbel_noise(words.data(), n, got.data());
    EXPECT_EQ(test::first_difference(got.data(), want.data(), n), n) << isa_name(isa);
  }
}

TEST(Sample, ArgmaxTakesTheLowestIdOfEquals) {
  for (Isa isa : available_isas())
    for (uint32_t n : kSizes) {
      const ArgmaxFn argmax = kernels(isa).sample.argmax;
      auto x = make_logits(n, 3, n);
      const auto want = static_cast<uint32_t>(std::max_element(x.begin(), x.end()) - x.begin());
      Argmax got = argmax(x.data(), n);
      EXPECT_EQ(got.id, want) << isa_name(isa) << " n=" << n;
      EXPECT_EQ(got.first_bad, n);
      const uint32_t a = n / 3, b = n - 1;
      x[a] = 100.0f, x[b] = 100.0f;
      EXPECT_EQ(argmax(x.data(), n).id, a);
      for (float& v : x) v = -1.0f;
      x[a] = -0.0f, x[b] = 0.0f;  // equal, and neither before the other
      EXPECT_EQ(argmax(x.data(), n).id, a);
      x[a] = 0.0f, x[b] = -0.0f;
      EXPECT_EQ(argmax(x.data(), n).id, a);
      for (float& v : x) v = -0x1.fffffep127f;
      EXPECT_EQ(argmax(x.data(), n).id, 0u);
    }
}

TEST(Sample, ArgmaxNamesTheFirstLogitThatIsNotFinite) {
  for (Isa isa : available_isas())
    for (uint32_t n : kSizes)
      for (float bad : {__builtin_nanf(""), -__builtin_nanf(""), __builtin_inff(), -__builtin_inff()}) {
        auto x = make_logits(n, 3, n);
        for (uint32_t at : {n - 1, n / 2, 0u}) {  // each before the one placed last
          x[at] = bad;
          ASSERT_EQ(kernels(isa).sample.argmax(x.data(), n).first_bad, at) << isa_name(isa) << " n=" << n;
        }
      }
}

TEST(Sample, WeightsEqualTheReferenceAndTheirSum) {
  for (uint32_t n : kSizes)
    for (float temperature : {1e-30f, 0.05f, 0.7f, 1.0f, 100.0f}) {
      const auto x = make_logits(n, 4, n + 1);
      const float max = *std::max_element(x.begin(), x.end());
      std::vector<uint32_t> want(n);
      const uint64_t total = sample_ref().weights(x.data(), n, max, temperature, want.data());
      EXPECT_EQ(total, std::accumulate(want.begin(), want.end(), uint64_t{0}));
      EXPECT_EQ(*std::max_element(want.begin(), want.end()), 0x80000000u);
      for (uint32_t i = 0; i < n; ++i) {
        // exp is below 2 ulp, and the floor takes less than 1.
        const double exact = std::exp(static_cast<double>(tempered_ref(x[i], max, temperature))) * 0x1p31;
        ASSERT_LE(want[i], exact * (1 + 2 * 0x1p-23));
        ASSERT_GT(want[i] + 1.0, exact * (1 - 2 * 0x1p-23));
      }
      for (Isa isa : available_isas()) {
        std::vector<uint32_t> got(n, 7);
        EXPECT_EQ(kernels(isa).sample.weights(x.data(), n, max, temperature, got.data()), total);
        EXPECT_EQ(got, want) << isa_name(isa) << " n=" << n << " temperature=" << temperature;
      }
    }
}

TEST(Sample, SortKeysKeepTheOrder) {
  std::vector<float> x = {-0x1.fffffep127f, -1.5f,     -1.0f, -0x1p-149f,     -0.0f, 0.0f,
                          0x1p-149f,        0x1p-126f, 1.0f,  0x1.fffffep127f};
  std::vector<uint32_t> want(x.size());
  sample_ref().sort_keys(x.data(), static_cast<uint32_t>(x.size()), want.data());
  for (size_t i = 1; i < x.size(); ++i) {
    EXPECT_LE(want[i - 1], want[i]) << i;
    EXPECT_EQ(want[i - 1] == want[i], i == 5) << i;  // the two zeros
  }
  for (uint32_t n : kSizes) {
    auto more = make_logits(n, 9, n);
    std::copy_n(x.begin(), std::min<size_t>(n, x.size()), more.begin());
    std::vector<uint32_t> keys(n);
    sample_ref().sort_keys(more.data(), n, keys.data());
    for (Isa isa : available_isas()) {
      std::vector<uint32_t> got(n, 7);
      kernels(isa).sample.sort_keys(more.data(), n, got.data());
      EXPECT_EQ(got, keys) << isa_name(isa) << " n=" << n;
    }
  }
}

TEST(Sample, TallyAndCompactEqualTheReference) {
  for (uint32_t n : kSizes) {
    std::vector<uint32_t> keys = make_words(n, n), ids(n);
    for (uint32_t i = 0; i < n; ++i) ids[i] = 3 * i + 1;
    keys[n / 2] = 0xffffffffu, keys[n / 3] = 0x80000000u, keys[0] = 0;
    for (uint32_t least : {0u, 1u, 0x10000000u, 0x7fffffffu, 0x80000000u, 0xf0000000u, 0xffffffffu}) {
      std::vector<uint32_t> want_keys(n), want_ids(n);
      const Tally want = sample_ref().tally(keys.data(), n, least);
      EXPECT_EQ(sample_ref().compact(keys.data(), ids.data(), n, least, want_keys.data(), want_ids.data()), want.count);
      want_keys.resize(want.count), want_ids.resize(want.count);
      for (Isa isa : available_isas()) {
        const SampleKernels& k = kernels(isa).sample;
        const Tally got = k.tally(keys.data(), n, least);
        EXPECT_EQ(got.count, want.count) << isa_name(isa) << " n=" << n << " least=" << least;
        EXPECT_EQ(got.sum, want.sum);
        std::vector<uint32_t> in_place_keys = keys, in_place_ids = ids;
        EXPECT_EQ(
            k.compact(in_place_keys.data(), in_place_ids.data(), n, least, in_place_keys.data(), in_place_ids.data()),
            want.count);
        in_place_keys.resize(want.count), in_place_ids.resize(want.count);
        EXPECT_EQ(in_place_keys, want_keys);
        EXPECT_EQ(in_place_ids, want_ids);
        std::vector<uint32_t> numbered_keys(n), numbered(n);
        EXPECT_EQ(k.compact(keys.data(), nullptr, n, least, numbered_keys.data(), numbered.data()), want.count);
        for (uint32_t i = 0; i < want.count; ++i) ASSERT_EQ(3 * numbered[i] + 1, want_ids[i]);
      }
    }
  }
}

TEST(Sample, GumbelRowAndListEqualTheReference) {
  for (uint32_t n : kSizes)
    for (uint32_t trial = 0; trial < (n > 200 ? 12 : 60); ++trial) {
      const auto x = make_logits(n, trial % 3 == 0 ? 12.0f : 2.0f, n + trial);
      const auto top = static_cast<uint32_t>(std::max_element(x.begin(), x.end()) - x.begin());
      const float temperature = std::vector<float>{0.01f, 0.7f, 1.0f, 3.0f}[trial % 4];
      const NoiseStream stream = {0x123456789abcdef0ull * trial, (uint64_t{1} << 32) - 3 + trial};
      // Scattered ids, so that a list's words come from every place of a counter's four.
      std::vector<uint32_t> ids(n);
      for (uint32_t i = 0; i < n; ++i) ids[i] = 5 * i + (i + trial) % 3;
      const uint32_t row = sample_ref().gumbel_row(x.data(), n, top, temperature, stream);
      const uint32_t list = sample_ref().gumbel_list(x.data(), ids.data(), n, x[top], temperature, stream);
      for (Isa isa : available_isas()) {
        const SampleKernels& k = kernels(isa).sample;
        ASSERT_EQ(k.gumbel_row(x.data(), n, top, temperature, stream), row) << isa_name(isa) << " n=" << n;
        ASSERT_EQ(k.gumbel_list(x.data(), ids.data(), n, x[top], temperature, stream), list)
            << isa_name(isa) << " n=" << n;
      }
    }
}

// A row over all tokens is a list of all tokens.
TEST(Sample, GumbelRowIsTheListOfAllTokens) {
  const uint32_t n = 3001;
  const auto x = make_logits(n, 5, 3);
  std::vector<uint32_t> ids(n);
  std::iota(ids.begin(), ids.end(), 0u);
  const auto top = static_cast<uint32_t>(std::max_element(x.begin(), x.end()) - x.begin());
  for (Isa isa : available_isas())
    for (uint64_t position = 0; position < 100; ++position) {
      const SampleKernels& k = kernels(isa).sample;
      ASSERT_EQ(k.gumbel_row(x.data(), n, top, 1.5f, {9, position}),
                k.gumbel_list(x.data(), ids.data(), n, x[top], 1.5f, {9, position}));
    }
}

// At x = 2^27 neighbouring f32 are 16 apart, so all scores but a few are equal: the lowest id wins.
TEST(Sample, EqualScoresGoToTheLowestId) {
  const uint32_t n = 1003;
  std::vector<float> x(n, 0x1p27f);
  std::vector<uint32_t> ids(n);
  for (uint32_t i = 0; i < n; ++i) ids[i] = 2 * i;
  x[700] = 0.0f;  // taken for the maximum
  for (Isa isa : available_isas()) {
    const SampleKernels& k = kernels(isa).sample;
    for (uint64_t position = 0; position < 40; ++position) {
      const NoiseStream stream = {1, position};
      ASSERT_EQ(k.gumbel_row(x.data(), n, 700, 1.0f, stream), sample_ref().gumbel_row(x.data(), n, 700, 1.0f, stream));
      ASSERT_EQ(k.gumbel_list(x.data(), ids.data(), n, 0.0f, 1.0f, stream),
                sample_ref().gumbel_list(x.data(), ids.data(), n, 0.0f, 1.0f, stream));
    }
    EXPECT_EQ(k.gumbel_list(x.data(), ids.data(), 50, -0x1p90f, 1.0f, {2, 2}), 0u);
  }
}

}  // namespace
}  // namespace stet
