// Token ids as people and programs write them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stet {

// "1,2,3", "1 2 3" or "[1, 2, 3]". Throws Error(kUsage) for an empty list and for what is not a whole number from 0 to
// 2^31 - 1.
std::vector<int32_t> parse_token_list(std::string_view what, std::string_view text);

// "[1, 2, 3]" and a line break.
std::string token_list_json(std::span<const int32_t> ids);

}  // namespace stet
