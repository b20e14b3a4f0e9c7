// Text to token ids and back: byte-level BPE with special tokens and provenance.
//
// Nothing is normalised: decode(encode(text)) is the text, byte by byte. (Hugging Face's Qwen tokenizers put text in
// Unicode form NFC first, which GGUF files do not record; llama.cpp does not do it either.)
//
// Special tokens, by their type in the file:
//   CONTROL       recognised only where every byte of it was written by the template; spelled in a message it stays
//   text
//                 and is tokenised in one piece with what surrounds it.
//   USER_DEFINED  recognised everywhere, as in Hugging Face tokenizers, except for markers (set_markers): those are
//                 recognised only in template bytes too.
// At each place the longest recognised token wins, and the leftmost place goes first.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe.h"
#include "text/provenance.h"
#include "text/token_trie.h"
#include "text/vocabulary.h"

namespace stet {

struct EncodeOptions {
  bool add_bos = false;        // begin with the BOS token if the model wants one; chat templates write their own
  bool parse_special = false;  // treat every byte as written by the template (stet tokenize --special)
  MissingByte missing = MissingByte::kRefuse;
};

class Tokenizer {
 public:
  // From the metadata of a GGUF file. Throws as read_vocabulary() does.
  explicit Tokenizer(const Metadata& metadata) : Tokenizer(read_vocabulary(metadata)) {}
  explicit Tokenizer(Vocabulary vocabulary);
  // For models without text: ids 0..255 are bytes (see synthetic_vocabulary).
  static Tokenizer synthetic(uint64_t vocab_size) { return Tokenizer(synthetic_vocabulary(vocab_size)); }

  Tokenizer(Tokenizer&&) = default;
  Tokenizer& operator=(Tokenizer&&) = default;

  size_t size() const { return vocab_.tokens.size(); }

  // Tokens of a text whose bytes all come from the caller. Throws Error(kInput) for a byte that no token stands for
  // (unless options.missing says otherwise).
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;
  // Tokens of a text with provenance, tokenised as one whole.
  std::vector<TokenId> encode(std::span<const Span> spans, const EncodeOptions& options = {}) const;
  std::vector<TokenId> encode(const Text& text, const EncodeOptions& options = {}) const;

  // The exact bytes that the tokens stand for, which need not be valid UTF-8. CONTROL and UNKNOWN tokens are left out
  // unless render_special. Throws Error(kUsage) for an id outside the vocabulary.
  std::string decode(std::span<const TokenId> ids, bool render_special) const;
  // Bytes of one token; empty for a CONTROL or UNKNOWN token unless render_special.
  std::string_view token_bytes(TokenId id, bool render_special) const;
  const Token& token(TokenId id) const;

  // Declares what the chat template itself prints (ChatTemplate::literals()): every USER_DEFINED token found in one of
  // these texts becomes a marker. Tokens of white space alone never do: templates print line breaks, and a message's
  // line breaks must be tokenised as in training.
  void set_markers(std::span<const std::string> template_texts);

  // Tokens that end an answer: EOS, EOT, EOM and the CONTROL tokens whose text is a known end marker. Ascending.
  const std::vector<TokenId>& stop_tokens() const { return stop_tokens_; }
  bool is_stop(TokenId id) const;

  std::optional<TokenId> bos() const { return vocab_.bos; }
  std::optional<TokenId> eos() const { return vocab_.eos; }
  bool adds_bos() const { return vocab_.add_bos; }
  const PreTokenizerSpec& pre_tokenizer() const { return vocab_.pre; }

  // SHA-256 over every token's bytes and type, in order: equal for two models whose ids mean the same text.
  const std::string& vocab_hash() const { return vocab_hash_; }

 private:
  class Encoder;

  Vocabulary vocab_;
  TokenTrie added_;            // CONTROL and USER_DEFINED tokens
  std::vector<bool> trusted_;  // by id: recognised in template bytes only
  std::vector<TokenId> stop_tokens_;
  std::string vocab_hash_;
};

}  // namespace stet
