#include "lab/cover.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace stet {
namespace {

using Pair = std::tuple<size_t, uint32_t, size_t, uint32_t>;  // factor, level, later factor, level

std::set<Pair> all_pairs(const std::vector<uint32_t>& levels) {
  std::set<Pair> pairs;
  for (size_t f = 0; f < levels.size(); ++f)
    for (size_t g = f + 1; g < levels.size(); ++g)
      for (uint32_t a = 0; a < levels[f]; ++a)
        for (uint32_t b = 0; b < levels[g]; ++b) pairs.insert({f, a, g, b});
  return pairs;
}

constexpr uint32_t kUnset = UINT32_MAX;

Pair make_pair(size_t f, uint32_t a, size_t g, uint32_t b) { return f < g ? Pair{f, a, g, b} : Pair{g, b, f, a}; }

// Uncovered pairs that the row would gain if factor f took this level.
size_t gain(const std::vector<uint32_t>& row, size_t f, uint32_t level, const std::set<Pair>& open) {
  size_t n = 0;
  for (size_t g = 0; g < row.size(); ++g)
    if (g != f && row[g] != kUnset) n += open.contains(make_pair(f, level, g, row[g]));
  return n;
}

}  // namespace

std::vector<std::vector<uint32_t>> cover_pairs(const std::vector<uint32_t>& levels) {
  std::set<Pair> open = all_pairs(levels);
  std::vector<std::vector<uint32_t>> rows;
  while (!open.empty()) {
    std::vector<uint32_t> row(levels.size(), kUnset);
    const auto [f0, a0, g0, b0] = *open.begin();
    row[f0] = a0;
    row[g0] = b0;
    for (size_t f = 0; f < levels.size(); ++f) {
      if (row[f] != kUnset) continue;
      uint32_t best = static_cast<uint32_t>(rows.size() % levels[f]);  // spreads the levels that gain nothing
      for (uint32_t level = 0; level < levels[f]; ++level)
        if (gain(row, f, level, open) > gain(row, f, best, open)) best = level;
      row[f] = best;
    }
    for (size_t f = 0; f < row.size(); ++f)
      for (size_t g = f + 1; g < row.size(); ++g) open.erase({f, row[f], g, row[g]});
    rows.push_back(row);
  }
  return rows;
}

}  // namespace stet
