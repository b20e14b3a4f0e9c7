#include "spec/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/kernels.h"
#include "spec/sampling_test_util.h"

namespace stet {
namespace {

using testing::ElementsAre;

std::vector<uint32_t> select(Candidates& candidates, Isa isa, const std::vector<float>& row, float temperature,
                             const Truncation& truncation) {
  const float max = *std::max_element(row.begin(), row.end());
  candidates.select(kernels(isa).sample, row.data(), static_cast<uint32_t>(row.size()), max, temperature, truncation);
  const auto ids = candidates.ids();
  EXPECT_EQ(candidates.logits().size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(candidates.logits()[i], row[ids[i]]);
  return {ids.begin(), ids.end()};
}

TEST(Candidates, EqualSortingTheWholeRow) {
  std::map<Isa, Candidates> reused;
  for (uint32_t vocab : {1u, 5u, 64u, 777u, 3000u})
    for (float step : {0.0f, 0.5f})  // many equal logits, so that cuts fall among equals
      for (float temperature : {0.05f, 0.8f, 1.0f, 50.0f})
        for (uint32_t k : {0u, 1u, 2u, 3u, 40u, 700u, 5000u})
          for (float p : {1.0f, 1e-20f, 0.1f, 0.5f, 0.9f, 0.99999994f})
            for (float m : {0.0f, 1e-20f, 0.05f, 1.0f}) {
              const auto row = test::row_of_logits(vocab, 3, vocab + k, step);
              const Truncation t = {k, p, m};
              const float max = *std::max_element(row.begin(), row.end());
              const auto want = test::plain_candidates(row, max, temperature, t);
              for (Isa isa : available_isas())
                ASSERT_EQ(select(reused[isa], isa, row, temperature, t), want)
                    << isa_name(isa) << " vocab=" << vocab << " step=" << step << " temperature=" << temperature
                    << " k=" << k << " p=" << p << " min_p=" << m;
            }
}

// By hand: four equal weights are a quarter each.
TEST(Candidates, EqualWeightsAreKeptFromTheLowestId) {
  const std::vector<float> row = {1, 2, -3, 2, 2, 2, -5};
  for (Isa isa : available_isas()) {
    Candidates c;
    const auto kept = [&](const Truncation& t) { return select(c, isa, row, 0.001f, t); };
    EXPECT_THAT(kept({.top_p = 0.25f}), ElementsAre(1));
    EXPECT_THAT(kept({.top_p = 0.2500001f}), ElementsAre(1, 3));
    EXPECT_THAT(kept({.top_p = 0.5f}), ElementsAre(1, 3));
    EXPECT_THAT(kept({.top_p = 0.75f}), ElementsAre(1, 3, 4));
    EXPECT_THAT(kept({.top_p = 0.99f}), ElementsAre(1, 3, 4, 5));
    EXPECT_THAT(kept({.top_k = 2}), ElementsAre(1, 3));
    EXPECT_THAT(kept({.top_k = 5}), ElementsAre(0, 1, 3, 4, 5));
    EXPECT_THAT(kept({.top_k = 6}), ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_THAT(kept({.top_k = 3, .top_p = 0.5f}), ElementsAre(1, 3));  // a half of three
    EXPECT_THAT(kept({.min_p = 1.0f}), ElementsAre(1, 3, 4, 5));
    EXPECT_THAT(kept({.min_p = 1e-9f}), ElementsAre(1, 3, 4, 5));
    EXPECT_THAT(kept({.min_p = 1e-10f}), ElementsAre(0, 1, 2, 3, 4, 5, 6));  // floor(1e-10 * 2^31) is 0
  }
}

TEST(Candidates, ZerosOfBothSignsAreEqual) {
  const std::vector<float> row = {-1, -0.0f, 0.0f, -0.0f, 0.0f};
  for (Isa isa : available_isas()) {
    Candidates c;
    EXPECT_THAT(select(c, isa, row, 1.0f, {.top_k = 3}), ElementsAre(1, 2, 3));
  }
}

}  // namespace
}  // namespace stet
