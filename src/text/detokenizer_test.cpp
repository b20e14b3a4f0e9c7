#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace stet {
namespace {

const Tokenizer& bytes() {
  static const Tokenizer tokenizer = Tokenizer::synthetic(256);
  return tokenizer;
}

std::string push_all(Detokenizer& detokenizer, const std::string& text) {
  std::string out;
  for (char c : text) out += detokenizer.push(static_cast<uint8_t>(c));
  return out;
}

TEST(Detokenizer, WithholdsACharacterUntilItIsComplete) {
  Detokenizer detokenizer(bytes());
  EXPECT_EQ(detokenizer.push('a'), "a");
  EXPECT_EQ(detokenizer.push(0xF0), "");
  EXPECT_EQ(detokenizer.push(0x9F), "");
  EXPECT_EQ(detokenizer.push(0xA6), "");
  EXPECT_EQ(detokenizer.push(0x99), "🦙");
  EXPECT_EQ(detokenizer.flush(), "");
}

TEST(Detokenizer, BytesThatCannotBecomeACharacterAreReleasedAtOnce) {
  Detokenizer detokenizer(bytes());
  EXPECT_EQ(detokenizer.push(0x80), "\x80");
  EXPECT_EQ(detokenizer.push(0xE2), "");
  EXPECT_EQ(detokenizer.push('x'), "\xE2x");
  EXPECT_EQ(detokenizer.push(0xE2), "");
  EXPECT_EQ(detokenizer.flush(), "\xE2");
}

TEST(Detokenizer, ReplacesLikeTheWholeText) {
  std::mt19937 random(5);
  const std::string parts[] = {"a",    "\xE2", "\x82", "\xAC", "\xF0", "\x9F", "\xA6",
                               "\xC3", "é",    "€",    "🦙", "\xFF", "\xED", "\xA0"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t n = random() % 12; n > 0; --n) text += parts[random() % std::size(parts)];
    Detokenizer exact(bytes());
    std::string got = push_all(exact, text);
    EXPECT_EQ(got + exact.flush(), text);
    Detokenizer replace(bytes(), InvalidBytes::kReplace);
    got = push_all(replace, text);
    EXPECT_TRUE(is_valid_utf8(got));
    EXPECT_EQ(got + replace.flush(), replace_invalid_utf8(text));
  }
}

TEST(Detokenizer, AnUnknownIdIsRefused) {
  Detokenizer detokenizer(bytes());
  EXPECT_THROW(detokenizer.push(256), Error);
}

}  // namespace
}  // namespace stet
