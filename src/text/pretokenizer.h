// Cuts text into the pieces inside which byte-pair merges may apply.
//
// A GGUF file names its pre-tokenizer in tokenizer.ggml.pre. The original tokenizers state them as regular
// expressions; here each is a small hand-written matcher over character classes (pretokenizer_*.cpp), linear in the
// length of the text. What the expressions match is written above each matcher.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stet {

enum class PreTokenizer { kGpt2, kSmollm, kLlamaBpe, kQwen2, kDeepseekV3 };

// What a name in tokenizer.ggml.pre means.
struct PreTokenizerSpec {
  std::string_view name;
  PreTokenizer kind;
  bool ignore_merges;  // a piece that is a token as a whole becomes that token, whatever the merges say
  bool add_bos;        // when the file does not say
};

// Throws Error(kUnsupported), with the list of supported names, for any other name.
const PreTokenizerSpec& find_pre_tokenizer(std::string_view name);

// Cuts `text` and returns the end offset of each piece, ascending; the last one is text.size(). Malformed bytes count
// as one symbol each. Empty text has no pieces.
std::vector<size_t> pre_tokenize(PreTokenizer kind, std::string_view text);

// The text as characters, for the matchers.
struct PreChar {
  uint32_t value;
  uint32_t classes;  // bits of CharClass
};

// Each matcher returns the end (> at) of the piece that begins at `at` within [at, end), or `at` when none begins.
size_t match_gpt2(const std::vector<PreChar>& text, size_t at, size_t end);
size_t match_llama(const std::vector<PreChar>& text, size_t at, size_t end, size_t max_digits);
size_t match_deepseek_words(const std::vector<PreChar>& text, size_t at, size_t end);

// The tail that the expressions share: a run of white space up to the end is one piece; before a word it leaves its
// last character to it, unless it is alone. REQUIRES: text[at] is white space.
size_t match_whitespace(const std::vector<PreChar>& text, size_t at, size_t end);
// White space up to and including the last CR or LF of the run that begins at `at`; `at` when there is none.
size_t match_line_breaks(const std::vector<PreChar>& text, size_t at, size_t end);

inline bool is_line_break(const PreChar& c) { return c.value == '\n' || c.value == '\r'; }
inline bool has_class(const PreChar& c, uint32_t classes) { return (c.classes & classes) != 0; }

}  // namespace stet
