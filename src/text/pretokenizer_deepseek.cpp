// The third pass of DeepSeek V3; the first two isolate numbers in groups of up to three and runs of CJK characters.
#include "text/pretokenizer.h"
#include "text/unicode.h"

namespace stet {
namespace {

bool is_ascii_letter(const PreChar& c) { return (c.value | 0x20) >= 'a' && (c.value | 0x20) <= 'z'; }

// All of ASCII between '!' and '~' that is no letter or digit.
bool is_ascii_punctuation(const PreChar& c) {
  return c.value > 0x20 && c.value < 0x7F && !is_ascii_letter(c) && !(c.value >= '0' && c.value <= '9');
}

}  // namespace

// One ASCII punctuation character with ASCII letters; letters and marks, with one character before them that is
// neither line break, letter, punctuation nor symbol; an optional space, punctuation and symbols, and the line breaks
// behind them; white space that ends in line breaks; white space. Everything else stays in the gaps.
size_t match_deepseek_words(const std::vector<PreChar>& text, size_t at, size_t end) {
  if (is_ascii_punctuation(text[at])) {
    size_t stop = at + 1;
    while (stop < end && is_ascii_letter(text[stop])) ++stop;
    if (stop > at + 1) return stop;
  }
  const bool prefix = !is_line_break(text[at]) && !has_class(text[at], kLetter | kMark | kPunctuation | kSymbol);
  const size_t word = at + (prefix ? 1 : 0);
  size_t stop = word;
  while (stop < end && has_class(text[stop], kLetter | kMark)) ++stop;
  if (stop > word) return stop;
  const size_t first = at + (text[at].value == ' ' ? 1 : 0);
  stop = first;
  while (stop < end && has_class(text[stop], kPunctuation | kSymbol)) ++stop;
  if (stop > first) {
    while (stop < end && is_line_break(text[stop])) ++stop;
    return stop;
  }
  if (const size_t breaks = match_line_breaks(text, at, end); breaks > at) return breaks;
  return has_class(text[at], kWhitespace) ? match_whitespace(text, at, end) : at;
}

}  // namespace stet
