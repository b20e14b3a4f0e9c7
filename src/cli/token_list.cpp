#include "cli/token_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "cli/flags.h"

namespace stet {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::string_view without_spaces(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

}  // namespace

std::vector<int32_t> parse_token_list(std::string_view what, std::string_view text) {
  std::string_view rest = without_spaces(text);
  if (rest.size() >= 2 && rest.front() == '[' && rest.back() == ']')
    rest = without_spaces(rest.substr(1, rest.size() - 2));
  if (rest.empty()) fail(Code::kUsage, "{}: no token ids given; write them as 1,2,3", what);
  std::vector<int32_t> ids;
  while (true) {
    const size_t end = std::min(rest.find_first_of(", \t\r\n"), rest.size());
    ids.push_back(static_cast<int32_t>(parse_whole(what, rest.substr(0, end), 0, INT32_MAX)));
    if (end == rest.size()) return ids;
    rest = without_spaces(rest.substr(end));
    if (rest.starts_with(',')) rest = without_spaces(rest.substr(1));
  }
}

std::string token_list_json(std::span<const int32_t> ids) { return fmt::format("[{}]\n", fmt::join(ids, ", ")); }

}  // namespace stet
