// Covering arrays of strength two: few rows in which every pair of levels of every two factors occurs together.
#pragma once

#include <cstdint>
#include <vector>

namespace stet {

// levels[f]: how many levels factor f has, each at least 1. Deterministic and greedy, not minimal.
std::vector<std::vector<uint32_t>> cover_pairs(const std::vector<uint32_t>& levels);

}  // namespace stet
