// Tokens to text while they arrive, never half a character.
#pragma once

#include <string>

#include "text/tokenizer.h"
#include "text/unicode.h"

namespace stet {

// What becomes of bytes that are no valid UTF-8.
enum class InvalidBytes {
  kExact,    // they are passed on as they are: pipes and files get exactly the bytes the tokens stand for
  kReplace,  // U+FFFD for each sequence that could have begun a character, as Hugging Face tokenizers do: for JSON
};

// The pieces that push() and flush() return, joined, do not depend on how the bytes are spread over tokens.
class Detokenizer {
 public:
  // `tokenizer` must outlive this. render_special: show CONTROL tokens as their text.
  explicit Detokenizer(const Tokenizer& tokenizer, InvalidBytes invalid = InvalidBytes::kExact,
                       bool render_special = false)
      : tokenizer_(&tokenizer), invalid_(invalid), render_special_(render_special) {}

  // Text that is complete with this token; may be empty. Bytes are withheld only while they can still become a
  // character. Throws Error(kUsage) for an id outside the vocabulary.
  std::string push(TokenId id) {
    pending_ += tokenizer_->token_bytes(id, render_special_);
    return take(pending_.size() - incomplete_utf8_suffix(pending_));
  }

  // What is still withheld; afterwards the next text may begin.
  std::string flush() { return take(pending_.size()); }

 private:
  std::string take(size_t bytes) {
    std::string out = pending_.substr(0, bytes);
    pending_.erase(0, bytes);
    return invalid_ == InvalidBytes::kReplace ? replace_invalid_utf8(out) : out;
  }

  const Tokenizer* tokenizer_;
  InvalidBytes invalid_;
  bool render_special_;
  std::string pending_;
};

}  // namespace stet
