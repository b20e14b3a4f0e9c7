#include "text/pretokenizer.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "text/golden_for_test.h"
#include "text/unicode.h"

namespace stet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> pieces(PreTokenizer kind, const std::string& text) {
  std::vector<std::string> out;
  size_t begin = 0;
  for (size_t end : pre_tokenize(kind, text)) {
    out.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size()) << "no byte is lost";
  return out;
}

// Piece lengths in characters as the golden file writes them.
std::string length_code(const std::vector<std::string>& list) {
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string out;
  for (const std::string& piece : list) {
    size_t chars = 0;
    for (size_t at = 0; at < piece.size(); ++chars) at += decode_utf8(std::string_view(piece).substr(at)).bytes;
    out.append((chars - 1) / 61, '+');
    out.push_back(kDigits[(chars - 1) % 61 + 1]);
  }
  return out;
}

TEST(PreTokenizer, EqualsTheRegularExpressionsOnGeneratedStrings) {
  const nlohmann::json golden = test::read_golden("splits.json");
  size_t compared = 0;
  for (const auto& [name, expected] : golden.at("lengths").items()) {
    const PreTokenizer kind = find_pre_tokenizer(name).kind;
    for (size_t i = 0; i < expected.size(); ++i, ++compared) {
      const std::string text = golden.at("strings").at(i);
      const std::vector<std::string> got = pieces(kind, text);
      ASSERT_EQ(length_code(got), expected.at(i).get<std::string>())
          << name << ", string " << i << ": " << ::testing::PrintToString(got);
    }
  }
  EXPECT_GE(compared, 7500u);
}

TEST(PreTokenizer, SmollmIsolatesEveryDigitAndTheSpaceBeforeIt) {
  EXPECT_THAT(pieces(PreTokenizer::kSmollm, "a 12"), ElementsAre("a", " ", "1", "2"));
  EXPECT_THAT(pieces(PreTokenizer::kGpt2, "a 12"), ElementsAre("a", " 12"));
}

TEST(PreTokenizer, GroupsOfDigits) {
  EXPECT_THAT(pieces(PreTokenizer::kLlamaBpe, "12345 6"), ElementsAre("123", "45", " ", "6"));
  EXPECT_THAT(pieces(PreTokenizer::kQwen2, "123"), ElementsAre("1", "2", "3"));
  EXPECT_THAT(pieces(PreTokenizer::kDeepseekV3, "12345日本語x"), ElementsAre("123", "45", "日本語", "x"));
}

TEST(PreTokenizer, ContractionsFollowTheirCaseRule) {
  EXPECT_THAT(pieces(PreTokenizer::kGpt2, "I'LL"), ElementsAre("I", "'", "LL"));
  EXPECT_THAT(pieces(PreTokenizer::kLlamaBpe, "I'LLx"), ElementsAre("I", "'LL", "x"));
  EXPECT_THAT(pieces(PreTokenizer::kLlamaBpe, "'\u017F"), ElementsAre("'\u017F"));
}

TEST(PreTokenizer, MalformedBytesAreSymbolsAndKept) {
  for (PreTokenizer kind : {PreTokenizer::kGpt2, PreTokenizer::kSmollm, PreTokenizer::kLlamaBpe, PreTokenizer::kQwen2,
                            PreTokenizer::kDeepseekV3}) {
    EXPECT_THAT(pieces(kind, "a \xFF\xE2\x82 b"), ElementsAre("a", " \xFF\xE2\x82", " b"));
  }
}

TEST(PreTokenizer, UnknownNamesAreRefusedWithTheListOfKnownOnes) {
  try {
    find_pre_tokenizer("tekken");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUnsupported);
    EXPECT_THAT(e.what(), HasSubstr("'tekken'"));
    EXPECT_THAT(e.what(), HasSubstr("smollm"));
    EXPECT_THAT(e.what(), HasSubstr("deepseek-v3"));
  }
}

TEST(PreTokenizer, LongRunsTakeLinearTime) {
  for (PreTokenizer kind : {PreTokenizer::kGpt2, PreTokenizer::kSmollm, PreTokenizer::kLlamaBpe, PreTokenizer::kQwen2,
                            PreTokenizer::kDeepseekV3}) {
    for (const char* unit : {"a", " ", "\n", " \n", "'", "1", "\x01", "日", "\r"}) {
      std::string text;
      while (text.size() < 200000) text += unit;
      EXPECT_FALSE(pre_tokenize(kind, text).empty());
    }
  }
}

}  // namespace
}  // namespace stet
