// The rules of GPT-2, also the second pass of smollm, whose first pass isolates every number character.
#include "text/pretokenizer.h"
#include "text/unicode.h"

namespace stet {
namespace {

// 's 't 'm 'd 're 've 'll, lower case only.
size_t match_contraction(const std::vector<PreChar>& text, size_t at, size_t end) {
  if (text[at].value != '\'' || at + 1 >= end) return at;
  const uint32_t first = text[at + 1].value;
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if (at + 2 >= end) return at;
  const uint32_t second = text[at + 2].value;
  if ((first == 'r' || first == 'v') && second == 'e') return at + 3;
  if (first == 'l' && second == 'l') return at + 3;
  return at;
}

}  // namespace

// A contraction, or an optional space with a run of letters, or of numbers, or of anything else that is not white
// space; or white space.
size_t match_gpt2(const std::vector<PreChar>& text, size_t at, size_t end) {
  if (const size_t stop = match_contraction(text, at, end); stop > at) return stop;
  const size_t first = at + (text[at].value == ' ' ? 1 : 0);
  if (first < end && !has_class(text[first], kWhitespace)) {
    const uint32_t group = text[first].classes & (kLetter | kNumber);
    size_t stop = first;
    while (stop < end && !has_class(text[stop], kWhitespace) && (text[stop].classes & (kLetter | kNumber)) == group)
      ++stop;
    return stop;
  }
  return match_whitespace(text, at, end);
}

}  // namespace stet
