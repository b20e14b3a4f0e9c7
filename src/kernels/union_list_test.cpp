// The cuts of a key list against the rule of union_attend.h, key by key.
#include "kernels/union_attend/union_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace stet {
namespace {

// Where chunks begin, and the end of the last: a chunk is a run of keys with the same id.
std::vector<uint32_t> cuts_of(bool rounded, uint32_t first, uint32_t window, uint32_t slots, uint32_t behind) {
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < window; ++i) ids.push_back(rounded ? i / 64 : (first + i) / 128);
  for (uint32_t i = 0; i < behind; ++i) ids.push_back(rounded ? (slots + i) / 64 : (first + window) / 128 + 1 + i / 128);
  std::vector<uint32_t> cuts;
  for (uint32_t j = 0; j < ids.size(); ++j)
    if (j == 0 || ids[j] != ids[j - 1]) cuts.push_back(j);
  cuts.push_back(static_cast<uint32_t>(ids.size()));
  return cuts;
}

TEST(UnionList, CutsWhereTheRuleCuts) {
  for (const bool rounded : {false, true})
    for (const uint32_t slots : {1u, 5u, 63u, 64u, 65u, 66u, 100u, 127u, 128u, 129u, 300u})
      for (const uint32_t behind : {0u, 1u, 61u, 62u, 64u, 127u, 128u, 129u, 512u, 700u})
        for (uint32_t end = 0; end < 460; ++end) {  // of the window's rows
          if (end + behind == 0) continue;
          const uint32_t window = std::min(end, slots), first = end - window;
          const UnionList list = UnionList::of(rounded, first, window, slots, behind);
          const std::vector<uint32_t> cuts = cuts_of(rounded, first, window, slots, behind);
          ASSERT_EQ(list.chunks() + 1, cuts.size()) << rounded << " " << slots << " " << behind << " " << end;
          for (uint32_t c = 0; c < cuts.size(); ++c) ASSERT_EQ(list.begin(c), cuts[c]) << rounded << " " << slots << " " << behind << " " << end;
        }
}

}  // namespace
}  // namespace stet
