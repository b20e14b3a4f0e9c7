// Byte-pair merging of one piece.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace stet {

// What to do with a byte that no token stands for. Some vocabularies lack bytes that never occur in UTF-8, and a few
// control characters.
enum class MissingByte {
  kRefuse,  // Error(kInput) that names the byte
  kDrop,    // leave it out, as the Hugging Face tokenizers do
};

// Appends the tokens of `piece` to `out`: starting from single bytes, the neighbours whose merge has the lowest rank
// are joined (the leftmost first among equals) until no merge applies. O(n log n).
void bpe_encode(const Vocabulary& vocab, std::string_view piece, MissingByte missing, std::vector<TokenId>& out);

}  // namespace stet
