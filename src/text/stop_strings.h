// Finds stop strings in a text that arrives in pieces.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stet {

// The match that ends first wins; among matches that end together, the one that begins first. So the result does not
// depend on how the text is cut into pieces. The stop string itself is never returned.
class StopStrings {
 public:
  // Throws Error(kUsage) for an empty string.
  explicit StopStrings(std::vector<std::string> stops);

  // Takes the next piece and returns the text that can be shown: all but the longest end that could begin a stop
  // string. Once a stop string was found, returns nothing more.
  std::string push(std::string_view piece);

  // The text ends here without a stop string: what was held back.
  std::string flush();

  // The stop string that was found.
  const std::optional<std::string>& found() const { return found_; }

 private:
  struct Pattern {
    std::string text;
    std::vector<size_t> border;  // border[n]: longest proper border of the first n bytes
    size_t matched = 0;          // bytes of `text` that the input ends with
  };

  static void advance(Pattern& pattern, char c);
  size_t longest_partial() const;

  std::vector<Pattern> patterns_;
  std::string held_;
  std::optional<std::string> found_;
};

}  // namespace stet
