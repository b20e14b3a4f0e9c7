#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace stet {
namespace {

// The definition, by brute force over the whole text.
std::pair<std::string, std::string> reference(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    const std::string* best = nullptr;
    for (const std::string& stop : stops) {
      if (end >= stop.size() && text.compare(end - stop.size(), stop.size(), stop) == 0) {
        if (best == nullptr || stop.size() > best->size()) best = &stop;
      }
    }
    if (best != nullptr) return {text.substr(0, end - best->size()), *best};
  }
  return {text, ""};
}

TEST(StopStrings, HoldsBackOnlyWhatCouldBeginAStopString) {
  StopStrings stops({"</end>", "STOP"});
  EXPECT_EQ(stops.push("abc"), "abc");
  EXPECT_EQ(stops.push("d</e"), "d");
  EXPECT_EQ(stops.push("x S"), "</ex ");
  EXPECT_EQ(stops.push("T"), "");
  EXPECT_EQ(stops.push("O"), "");
  EXPECT_FALSE(stops.found());
  EXPECT_EQ(stops.push("P!"), "");
  EXPECT_EQ(stops.found(), "STOP");
  EXPECT_EQ(stops.push("more"), "");
  EXPECT_EQ(stops.flush(), "");
}

TEST(StopStrings, FlushReturnsAnUnfinishedBeginning) {
  StopStrings stops({"STOP"});
  EXPECT_EQ(stops.push("xST"), "x");
  EXPECT_EQ(stops.flush(), "ST");
}

TEST(StopStrings, TheMatchThatEndsFirstWinsThenTheOneThatBeginsFirst) {
  StopStrings inner({"bcd", "c"});
  EXPECT_EQ(inner.push("abcd"), "ab");
  EXPECT_EQ(inner.found(), "c");
  StopStrings together({"c", "bc"});
  EXPECT_EQ(together.push("abc"), "a");
  EXPECT_EQ(together.found(), "bc");
}

TEST(StopStrings, NothingDependsOnHowTheTextIsCut) {
  std::mt19937 random(7);
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const auto word = [&](size_t longest) {
    std::string out(1 + pick(longest), 'a');
    for (char& c : out) c = static_cast<char>('a' + pick(2));
    return out;
  };
  size_t found = 0;
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::string> list;
    for (size_t n = 1 + pick(3); n > 0; --n) list.push_back(word(6));
    const std::string text = word(40);
    StopStrings stops(list);
    std::string got;
    for (size_t at = 0; at < text.size();) {
      const size_t n = std::min(text.size() - at, 1 + pick(5));
      got += stops.push(std::string_view(text).substr(at, n));
      at += n;
    }
    got += stops.flush();
    const auto [expected, stop] = reference(text, list);
    ASSERT_EQ(got, expected) << text;
    ASSERT_EQ(stops.found().value_or(""), stop) << text;
    found += stops.found().has_value();
  }
  EXPECT_GT(found, 1000u);
  EXPECT_LT(found, 5000u);
}

TEST(StopStrings, AnEmptyStopStringIsRefused) { EXPECT_THROW(StopStrings({"a", ""}), Error); }

}  // namespace
}  // namespace stet
