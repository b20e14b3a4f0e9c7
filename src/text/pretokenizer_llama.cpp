// The rules of Llama 3 (numbers in groups of up to three) and of Qwen 2 (every number character alone).
#include "text/pretokenizer.h"
#include "text/unicode.h"

namespace stet {
namespace {

constexpr uint32_t kLongS = 0x17F;  // folds to 's' when case is ignored

uint32_t fold(uint32_t c) {
  if (c >= 'A' && c <= 'Z') return c + ('a' - 'A');
  return c == kLongS ? 's' : c;
}

// 's 't 'm 'd 're 've 'll in any case.
size_t match_llama_contraction(const std::vector<PreChar>& text, size_t at, size_t end) {
  if (text[at].value != '\'' || at + 1 >= end) return at;
  const uint32_t first = fold(text[at + 1].value);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if (at + 2 >= end) return at;
  const uint32_t second = fold(text[at + 2].value);
  if ((first == 'r' || first == 'v') && second == 'e') return at + 3;
  if (first == 'l' && second == 'l') return at + 3;
  return at;
}

size_t skip_letters(const std::vector<PreChar>& text, size_t at, size_t end) {
  while (at < end && has_class(text[at], kLetter)) ++at;
  return at;
}

}  // namespace

// A contraction; letters, with one character before them that is neither line break, letter nor number; up to
// max_digits numbers; an optional space, a run of anything that is no white space, letter or number, and the line
// breaks behind it; white space that ends in line breaks; white space.
size_t match_llama(const std::vector<PreChar>& text, size_t at, size_t end, size_t max_digits) {
  if (const size_t stop = match_llama_contraction(text, at, end); stop > at) return stop;
  const bool prefix = !is_line_break(text[at]) && !has_class(text[at], kLetter | kNumber);
  const size_t word = at + (prefix ? 1 : 0);
  if (const size_t stop = skip_letters(text, word, end); stop > word) return stop;
  if (has_class(text[at], kNumber)) {
    size_t stop = at;
    while (stop < end && stop - at < max_digits && has_class(text[stop], kNumber)) ++stop;
    return stop;
  }
  const size_t first = at + (text[at].value == ' ' ? 1 : 0);
  size_t stop = first;
  while (stop < end && !has_class(text[stop], kWhitespace | kLetter | kNumber)) ++stop;
  if (stop > first) {
    while (stop < end && is_line_break(text[stop])) ++stop;
    return stop;
  }
  if (const size_t breaks = match_line_breaks(text, at, end); breaks > at) return breaks;
  return match_whitespace(text, at, end);
}

}  // namespace stet
