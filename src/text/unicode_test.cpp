#include "text/unicode.h"

#include <gtest/gtest.h>

#include "text/byte_alphabet.h"

namespace stet {
namespace {

TEST(Unicode, EveryCharacterSurvivesARoundTrip) {
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(text, c);
    const CodePoint back = decode_utf8(text);
    ASSERT_TRUE(back.valid) << c;
    ASSERT_EQ(back.value, c);
    ASSERT_EQ(back.bytes, text.size());
    for (size_t n = 1; n < text.size(); ++n) {
      ASSERT_FALSE(decode_utf8(text.substr(0, n)).valid) << c;
      ASSERT_EQ(incomplete_utf8_suffix("a" + text.substr(0, n)), n) << c;
    }
    ASSERT_EQ(incomplete_utf8_suffix(text), 0u) << c;
  }
}

TEST(Unicode, MalformedBytesComeOneByOne) {
  for (const char* bad :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF",
        "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE", "\xFF", "\xE2\x82", "\xF0\x9F\x98"}) {
    const CodePoint c = decode_utf8(bad);
    EXPECT_FALSE(c.valid) << bad;
    EXPECT_EQ(c.bytes, 1) << bad;
    EXPECT_FALSE(is_valid_utf8(bad)) << bad;
  }
}

TEST(Unicode, OnlyBytesThatMayStillBecomeACharacterAreIncomplete) {
  EXPECT_EQ(incomplete_utf8_suffix(""), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("abc"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("\x80"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("\xC0"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("\xE0\x80"), 0u) << "overlong whatever follows";
  EXPECT_EQ(incomplete_utf8_suffix("\xED\xA0"), 0u) << "a surrogate whatever follows";
  EXPECT_EQ(incomplete_utf8_suffix("\xF4\x90"), 0u) << "above U+10FFFF whatever follows";
  EXPECT_EQ(incomplete_utf8_suffix("\xF0\x9F\x98"), 3u);
  EXPECT_EQ(incomplete_utf8_suffix("\xE2\x82\xE2"), 1u);
}

// Expected values: Python's bytes.decode("utf-8", "replace").
TEST(Unicode, ReplacementFollowsTheLongestPossiblePrefix) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(replace_invalid_utf8("ab"), "ab");
  EXPECT_EQ(replace_invalid_utf8("\xE2\x82"), r);
  EXPECT_EQ(replace_invalid_utf8("\xE2\x82x"), r + "x");
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98\xF0\x9F"), r + r);
  EXPECT_EQ(replace_invalid_utf8("\xC0\x80"), r + r);
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), r + r + r);
}

TEST(Unicode, ClassesAreTheOnesOfUnicode16) {
  EXPECT_EQ(char_classes('a'), kLetter);
  EXPECT_EQ(char_classes('7'), kNumber);
  EXPECT_EQ(char_classes(0x301), kMark);
  EXPECT_EQ(char_classes('_'), kPunctuation);
  EXPECT_EQ(char_classes('$'), kSymbol);
  EXPECT_EQ(char_classes('\n'), kWhitespace);
  EXPECT_EQ(char_classes(0x3000), kWhitespace);
  EXPECT_EQ(char_classes(0x200B), 0) << "zero width space is no white space";
  EXPECT_EQ(char_classes(0x1C), 0) << "Python calls it a space, Unicode does not";
  EXPECT_EQ(char_classes(kReplacementCharacter), kSymbol);
  EXPECT_EQ(char_classes(0x2EBF0), kLetter) << "15.1";
  EXPECT_EQ(char_classes(0x2FFF), kSymbol) << "15.1";
  EXPECT_EQ(char_classes(0x10D40), kNumber) << "16.0";
  EXPECT_EQ(char_classes(0x897), kMark) << "16.0";
}

// Totals of the categories in Unicode 16.0, counted with the expressions \p{L} and so on of `tokenizers` 0.23.3.
TEST(Unicode, CategoryTotals) {
  size_t letters = 0, numbers = 0, marks = 0, punctuation = 0, symbols = 0, spaces = 0;
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    const uint8_t classes = char_classes(c);
    letters += (classes & kLetter) != 0;
    numbers += (classes & kNumber) != 0;
    marks += (classes & kMark) != 0;
    punctuation += (classes & kPunctuation) != 0;
    symbols += (classes & kSymbol) != 0;
    spaces += (classes & kWhitespace) != 0;
  }
  EXPECT_EQ(letters, 141028u);
  EXPECT_EQ(numbers, 1911u);
  EXPECT_EQ(marks, 2501u);
  EXPECT_EQ(punctuation, 855u);
  EXPECT_EQ(symbols, 8514u);
  EXPECT_EQ(spaces, 25u);
}

TEST(ByteAlphabet, IsABijection) {
  std::string all;
  for (int b = 0; b < 256; ++b) all.push_back(static_cast<char>(b));
  EXPECT_EQ(alphabet_to_bytes(bytes_to_alphabet(all)), all);
  EXPECT_EQ(bytes_to_alphabet(" \n\x7F\xAD"), "\u0120\u010A\u0121\u0143");
  EXPECT_EQ(alphabet_to_bytes("a b"), std::nullopt);
  EXPECT_EQ(alphabet_to_bytes("\u0144"), std::nullopt);
}

}  // namespace
}  // namespace stet
