#include "lab/cover.h"

#include <gtest/gtest.h>

#include <set>

namespace stet {
namespace {

TEST(CoverPairs, EveryPairOccursInFewRows) {
  const std::vector<uint32_t> levels = {3, 2, 6, 3, 5, 4, 3, 2, 1};
  const auto rows = cover_pairs(levels);
  for (size_t f = 0; f < levels.size(); ++f)
    for (size_t g = f + 1; g < levels.size(); ++g) {
      std::set<std::pair<uint32_t, uint32_t>> seen;
      for (const auto& row : rows) seen.insert({row[f], row[g]});
      EXPECT_EQ(seen.size(), size_t{levels[f]} * levels[g]) << f << " " << g;
    }
  EXPECT_LE(rows.size(), 45u);  // the largest two factors need 30
}

}  // namespace
}  // namespace stet
