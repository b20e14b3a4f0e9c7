#include "text/stop_strings.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace stet {
namespace {

std::vector<size_t> borders(const std::string& text) {
  std::vector<size_t> border(text.size() + 1, 0);
  for (size_t n = 1; n < text.size(); ++n) {
    size_t length = border[n];
    while (length > 0 && text[length] != text[n]) length = border[length];
    border[n + 1] = text[length] == text[n] ? length + 1 : 0;
  }
  return border;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> stops) {
  for (std::string& stop : stops) {
    if (stop.empty()) fail(Code::kUsage, "a stop string must not be empty");
    std::vector<size_t> border = borders(stop);
    patterns_.push_back({std::move(stop), std::move(border), 0});
  }
}

void StopStrings::advance(Pattern& pattern, char c) {
  while (pattern.matched > 0 && pattern.text[pattern.matched] != c) pattern.matched = pattern.border[pattern.matched];
  if (pattern.text[pattern.matched] == c) ++pattern.matched;
}

size_t StopStrings::longest_partial() const {
  size_t longest = 0;
  for (const Pattern& pattern : patterns_) longest = std::max(longest, pattern.matched);
  return longest;
}

std::string StopStrings::push(std::string_view piece) {
  if (found_) return {};
  for (char c : piece) {
    held_.push_back(c);
    const Pattern* complete = nullptr;
    for (Pattern& pattern : patterns_) {
      advance(pattern, c);
      const bool is_complete = pattern.matched == pattern.text.size();
      if (is_complete && (complete == nullptr || pattern.text.size() > complete->text.size())) complete = &pattern;
    }
    if (complete != nullptr) {
      found_ = complete->text;
      std::string out = held_.substr(0, held_.size() - complete->text.size());
      held_.clear();
      return out;
    }
  }
  const size_t show = held_.size() - longest_partial();
  std::string out = held_.substr(0, show);
  held_.erase(0, show);
  return out;
}

std::string StopStrings::flush() {
  for (Pattern& pattern : patterns_) pattern.matched = 0;
  return std::exchange(held_, {});
}

}  // namespace stet
