#include "base/visible_text.h"

#include <gtest/gtest.h>

namespace stet {
namespace {

TEST(VisibleText, LeavesPrintableTextAlone) {
  for (const char* text : {"", "plain ~", "caf\u00e9 \u4e2d\u6587 \U0001f600", "back\\slash", "\u00a0"})
    EXPECT_EQ(visible_text(text), text);
}

TEST(VisibleText, ShowsControls) {
  EXPECT_EQ(visible_text("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(visible_text(std::string_view("a\0b\r\b\x7f", 6)), "a\\x00b\\x0d\\x08\\x7f");
  EXPECT_EQ(visible_text("\u0085\u009b"), "\\u0085\\u009b");  // C1: a terminal may take U+009B for ESC [
}

TEST(VisibleText, KeepsLayoutWhenAsked) {
  EXPECT_EQ(visible_text("a\n\tb"), "a\\n\\tb");
  EXPECT_EQ(visible_text("a\n\tb\r", true), "a\n\tb\\x0d");
}

TEST(VisibleText, ShowsWhatReordersText) {
  EXPECT_EQ(visible_text("\u202eabc\u202c\u2066\u2069\u200e\u200f\u061c\u2028\ufeff"),
            "\\u202eabc\\u202c\\u2066\\u2069\\u200e\\u200f\\u061c\\u2028\\ufeff");
}

// Overlong forms, surrogates, lone and missing continuation bytes, values above U+10FFFF: byte by byte.
TEST(VisibleText, ShowsInvalidUtf8) {
  EXPECT_EQ(visible_text("\xc0\x9b"), "\\xc0\\x9b");
  EXPECT_EQ(visible_text("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");
  EXPECT_EQ(visible_text("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(visible_text("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(visible_text("\x9b"
                         "1m"),
            "\\x9b1m");
  EXPECT_EQ(visible_text("x\xe4\xb8"), "x\\xe4\\xb8");
  EXPECT_EQ(visible_text("\xe4\xb8z"), "\\xe4\\xb8z");
}

}  // namespace
}  // namespace stet
