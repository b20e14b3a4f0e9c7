// Texts that never repeat themselves: sentences, functions, sums, records and noise, drawn from a grammar.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lab/spec_eval/draws.h"

namespace stet {

enum class TextSource : uint8_t { prose, code, math, extraction, adversarial };

// The next piece: a sentence, a function, a sum, a record, a line of noise. Ends with a blank or a line break.
std::string next_piece(TextSource source, Draws& draws);

// What a model is asked to do with a text of this source: one sentence.
std::string task_of(TextSource source, Draws& draws);

// The share of the text's sequences of eight words that occur once. 1 for a text of fewer than eight words.
double unique_8gram_share(std::string_view text);

// Whether a line of at least 40 bytes occurs twice.
bool repeats_a_long_line(std::string_view text);

}  // namespace stet
