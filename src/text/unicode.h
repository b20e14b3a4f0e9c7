// UTF-8 and the character classes that pre-tokenizers ask about.
//
// Classes come from utf8proc. Debian 12 has Unicode 15.0, Ubuntu 24.04 has 15.1, and the regular expressions of the
// Hugging Face `tokenizers` package (Oniguruma 6.9.10 in version 0.23) have 16.0. 15.1 and 16.0 only add characters, so
// a list of the additions (unicode.cpp) brings every build to the classes of 16.0: token ids must not depend on the
// distribution. What remains different: `tokenizers` reads single digits (pre-tokenizer smollm) by Rust's tables
// (17.0: 13 more digits, U+11DE0..9 and U+16FF4..6), and llama.cpp has tables of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stet {

inline constexpr uint32_t kReplacementCharacter = 0xFFFD;

// Bits of CodePoint::classes. A character has at most one of the first five; white space may come on top.
enum CharClass : uint8_t {
  kLetter = 1,
  kNumber = 2,
  kMark = 4,
  kPunctuation = 8,
  kSymbol = 16,
  kWhitespace = 32,  // the Unicode property White_Space
};

// One decoded character, or one byte that is no part of a valid character (value = kReplacementCharacter).
struct CodePoint {
  uint32_t value = 0;
  uint8_t bytes = 0;  // 1..4
  bool valid = true;
};

// Decodes the character at the start of `text`: shortest form, no surrogates, at most U+10FFFF. A malformed sequence
// yields its first byte alone, so that no byte is lost. REQUIRES: !text.empty().
CodePoint decode_utf8(std::string_view text);

// How many bytes at the end of `text` are the beginning of a character that is not complete yet: 0..3.
size_t incomplete_utf8_suffix(std::string_view text);

bool is_valid_utf8(std::string_view text);

// `text` with every malformed byte sequence replaced by U+FFFD: one for each longest sequence that could have begun a
// character, as Rust and Python do.
std::string replace_invalid_utf8(std::string_view text);

void append_utf8(std::string& out, uint32_t code_point);

// Classes of a character (bits of CharClass). A malformed byte counts as U+FFFD, which is a symbol.
uint8_t char_classes(uint32_t code_point);

uint32_t to_upper(uint32_t code_point);
uint32_t to_lower(uint32_t code_point);

}  // namespace stet
